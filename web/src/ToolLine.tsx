// A tool call on one line: how it stands, its name, its input.
import { getToolName } from "ai";

import { preview, type ToolPart } from "./model";

const STATES: Partial<Record<ToolPart["state"], [symbol: string, label: string]>> = {
  "output-available": ["✓", "done"],
  "output-error": ["!", "failed"],
  "output-denied": ["–", "denied"],
};

interface Props {
  part: ToolPart;
  /** Whether a result may still come. */
  active: boolean;
}

export function ToolLine({ part, active }: Props) {
  const [symbol, label] = STATES[part.state] ?? (active ? ["", "working"] : ["–", "no result"]);
  return (
    <span className="tool-line">
      <span
        className="tool-state"
        data-state={part.state}
        data-working={label === "working"}
        role="img"
        aria-label={label}
      >
        {symbol}
      </span>
      <code className="tool-name">{getToolName(part)}</code>
      <span className="tool-input">{preview(part.input)}</span>
    </span>
  );
}
