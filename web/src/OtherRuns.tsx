// Runs that belong to no tool call of the conversation, such as work started by a method.
import type { Step } from "./address";
import type { Run } from "./model";
import { RunPanel } from "./RunPanel";

interface Props {
  runs: Run[];
  onOpenRun: (step: Step) => void;
}

export function OtherRuns({ runs, onOpenRun }: Props) {
  return (
    <section className="other-runs" aria-label="Other runs">
      <h2>Other runs</h2>
      <p className="hint">Work that no answer above asked for.</p>
      {runs.map((run) => (
        <RunPanel key={run.runId} run={run} onOpen={onOpenRun} />
      ))}
    </section>
  );
}
