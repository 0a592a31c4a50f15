// How far a run is: a bar with phase and message while it works, and the milestones it reached.
import type { Run } from "./model";

export function RunProgress({ run }: { run: Run }) {
  const { progress, milestones = [], status } = run;
  const working = status === "running" && progress !== undefined;
  if (!working && milestones.length === 0) return null;
  return (
    <div className="progress">
      {working && <Bar fraction={progress.fraction} />}
      {working && (progress.phase || progress.message) && (
        <p className="progress-text">
          {progress.phase && <span className="progress-phase">{progress.phase}</span>}
          {progress.message}
        </p>
      )}
      {milestones.length > 0 && (
        <ol className="milestones" aria-label="Milestones">
          {milestones.map((milestone) => (
            <li key={milestone.sequence} data-milestone={milestone.name}>
              {milestone.name}
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

function Bar({ fraction }: { fraction: number | undefined }) {
  if (fraction === undefined) return null;
  const percent = Math.round(Math.min(1, Math.max(0, fraction)) * 100);
  return (
    <div
      className="bar"
      role="progressbar"
      aria-label="Progress"
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent}
    >
      <span style={{ width: `${percent}%` }} />
    </div>
  );
}
