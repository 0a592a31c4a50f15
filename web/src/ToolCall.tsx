// One tool call of an answer. If it dispatched other agents, each of its runs has a panel.
import { getToolName } from "ai";

import type { Step } from "./address";
import type { Run, ToolPart } from "./model";
import { RunPanel } from "./RunPanel";
import { SimpleToolCall } from "./SimpleToolCall";
import { ToolLine } from "./ToolLine";
import { ToolError, ToolOutput } from "./ToolOutput";

interface Props {
  part: ToolPart;
  active: boolean;
  runs: Run[];
  onOpenRun: (step: Step) => void;
}

export function ToolCall({ part, active, runs, onOpenRun }: Props) {
  if (runs.length === 0) return <SimpleToolCall part={part} active={active} />;
  return (
    <section className="tool" data-tool={getToolName(part)} data-state={part.state}>
      <ToolLine part={part} active={active} />
      <div className="runs" data-count={runs.length}>
        {runs.map((run) => (
          <RunPanel key={run.runId} run={run} onOpen={onOpenRun} />
        ))}
      </div>
      <ToolError part={part} />
      {part.state === "output-available" && (
        <details className="tool-output">
          <summary>What the assistant was given</summary>
          <ToolOutput value={part.output} />
        </details>
      )}
    </section>
  );
}
