// A tool call without runs: one line, which opens to show what came back.
import { getToolName } from "ai";

import type { ToolPart } from "./model";
import { ToolLine } from "./ToolLine";
import { ToolError, ToolOutput } from "./ToolOutput";

export function SimpleToolCall({ part }: { part: ToolPart }) {
  return (
    <div className="tool" data-tool={getToolName(part)} data-state={part.state}>
      {part.state === "output-available" ? (
        <details className="tool-details">
          <summary>
            <ToolLine part={part} />
          </summary>
          <ToolOutput value={part.output} />
        </details>
      ) : (
        <ToolLine part={part} />
      )}
      <ToolError part={part} />
    </div>
  );
}
