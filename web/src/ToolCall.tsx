// One tool call of an answer. If it dispatched other agents, each of its runs has a panel.
import { type DynamicToolUIPart, getToolName, type ToolUIPart } from "ai";

import type { Step } from "./address";
import { preview, type Run } from "./model";
import { RunPanel } from "./RunPanel";
import { ToolOutput } from "./ToolOutput";

interface Props {
  part: ToolUIPart | DynamicToolUIPart;
  runs: Run[];
  onOpenRun: (step: Step) => void;
}

export function ToolCall({ part, runs, onOpenRun }: Props) {
  return (
    <section className="tool" data-tool={getToolName(part)} data-state={part.state}>
      <header className="tool-header">
        <ToolState state={part.state} />
        <code className="tool-name">{getToolName(part)}</code>
        <span className="tool-input">{preview(part.input)}</span>
      </header>
      {runs.length > 0 && (
        <div className="runs" data-count={runs.length}>
          {runs.map((run) => (
            <RunPanel key={run.runId} run={run} onOpen={onOpenRun} />
          ))}
        </div>
      )}
      <ToolOutput part={part} />
    </section>
  );
}

const STATES: Partial<Record<ToolUIPart["state"], [symbol: string, label: string]>> = {
  "output-available": ["✓", "done"],
  "output-error": ["!", "failed"],
  "output-denied": ["–", "denied"],
};

export function ToolState({ state }: { state: ToolUIPart["state"] }) {
  const [symbol, label] = STATES[state] ?? ["", "working"];
  return (
    <span className="tool-state" data-state={state} role="img" aria-label={`Tool call: ${label}`}>
      {symbol}
    </span>
  );
}
