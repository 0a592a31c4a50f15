// What a tool call gave back, as text; or why it failed.
import type { ToolPart } from "./model";

export function ToolOutput({ value }: { value: unknown }) {
  return <pre tabIndex={0}>{asText(value)}</pre>;
}

export function ToolError({ part }: { part: ToolPart }) {
  if (part.state !== "output-error") return null;
  return (
    <p className="tool-error" role="alert">
      {part.errorText}
    </p>
  );
}

function asText(value: unknown): string {
  if (typeof value === "string") return value;
  return JSON.stringify(value, null, 2) ?? "nothing";
}
