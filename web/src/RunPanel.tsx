// A run of another agent, live: how far it is, what it says, and a way to open it as a chat.
import type { Step } from "./address";
import { AgentIcon } from "./AgentIcon";
import { preview, type Run, RUN_STATUS, runTitle } from "./model";
import { RunProgress } from "./RunProgress";
import { RunWork } from "./RunWork";

interface Props {
  run: Run;
  onOpen: (step: Step) => void;
}

export function RunPanel({ run, onOpen }: Props) {
  const title = runTitle(run);
  const input = preview(run.inputPreview);
  const repeatsTitle = input.startsWith(title);
  return (
    <section
      className="run"
      data-run={run.runId}
      data-agent={run.agentType}
      data-status={run.status}
      aria-label={`${title}: ${RUN_STATUS[run.status]}`}
    >
      <header className="run-header">
        <AgentIcon agentType={run.agentType} />
        <h3>{title}</h3>
        {title !== run.agentType && <span className="run-agent">{run.agentType}</span>}
        <span className="badge" data-status={run.status}>
          {RUN_STATUS[run.status]}
        </span>
        <button
          type="button"
          className="link-button"
          aria-label={`Open as chat: ${title}, ${input}`}
          onClick={() => onOpen(run.subAgent)}
        >
          Open as chat
        </button>
      </header>
      {input !== "" && !repeatsTitle && <p className="run-input">{input}</p>}
      <RunProgress run={run} />
      <RunWork run={run} title={title} />
      <RunEnd run={run} />
    </section>
  );
}

function RunEnd({ run }: { run: Run }) {
  const failed = run.status === "error" || run.status === "interrupted";
  if (!failed) return null;
  return (
    <p className="run-error" role={run.status === "error" ? "alert" : undefined}>
      {run.error ?? RUN_STATUS[run.status]}
      {run.reason && <span className="run-reason"> ({run.reason})</span>}
      {run.childStillRunning && <span> The agent is still working and may yet finish.</span>}
    </p>
  );
}
