// A tool call without runs: one line, which opens to show what came back.
import { getToolName } from "ai";

import type { ToolPart } from "./model";
import { ToolLine } from "./ToolLine";
import { ToolError, ToolOutput } from "./ToolOutput";

interface Props {
  part: ToolPart;
  active: boolean;
}

export function SimpleToolCall({ part, active }: Props) {
  return (
    <div className="tool" data-tool={getToolName(part)} data-state={part.state}>
      {part.state === "output-available" ? (
        <details className="tool-details">
          <summary>
            <ToolLine part={part} active={active} />
          </summary>
          <ToolOutput value={part.output} />
        </details>
      ) : (
        <ToolLine part={part} active={active} />
      )}
      <ToolError part={part} />
    </div>
  );
}
