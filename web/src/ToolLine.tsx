// A tool call on one line: how it stands, its name, its input.
import { getToolName } from "ai";

import { preview, type ToolPart } from "./model";

const STATES: Partial<Record<ToolPart["state"], [symbol: string, label: string]>> = {
  "output-available": ["✓", "done"],
  "output-error": ["!", "failed"],
  "output-denied": ["–", "denied"],
};

export function ToolLine({ part }: { part: ToolPart }) {
  const [symbol, label] = STATES[part.state] ?? ["", "working"];
  return (
    <span className="tool-line">
      <span className="tool-state" data-state={part.state} role="img" aria-label={label}>
        {symbol}
      </span>
      <code className="tool-name">{getToolName(part)}</code>
      <span className="tool-input">{preview(part.input)}</span>
    </span>
  );
}
