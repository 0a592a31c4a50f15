// A message from a run in the background: one line, which opens to show all that was told.
import { Markdown } from "./Markdown";
import type { Told } from "./background";

export function Notice({ told }: { told: Told }) {
  const kind = told.status ?? "milestone";
  return (
    <article className="notice" data-notice={kind} aria-label="From the background">
      <p>
        <span aria-hidden="true">{told.status === null ? "⚑" : "↩"}</span> {told.headline}
      </p>
      {told.rest !== "" && (
        <details>
          <summary>What the assistant was told</summary>
          <Markdown text={told.rest} />
        </details>
      )}
    </article>
  );
}
