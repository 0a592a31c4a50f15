// What a tool call gave back: a failure as text, anything else on request.
import type { DynamicToolUIPart, ToolUIPart } from "ai";

export function ToolOutput({ part }: { part: ToolUIPart | DynamicToolUIPart }) {
  if (part.state === "output-error") {
    return (
      <p className="tool-error" role="alert">
        {part.errorText}
      </p>
    );
  }
  if (part.state !== "output-available") return null;
  return (
    <details className="tool-output">
      <summary>What came back</summary>
      <pre tabIndex={0}>{asText(part.output)}</pre>
    </details>
  );
}

function asText(value: unknown): string {
  if (typeof value === "string") return value;
  return JSON.stringify(value, null, 2) ?? "nothing";
}
