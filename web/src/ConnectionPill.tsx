// Says whether the page is connected, in words and colour.
import type { ConnectionState } from "./connection";

const LABELS: Record<ConnectionState, string> = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting",
  refused: "Refused",
};

export function ConnectionPill({ state }: { state: ConnectionState }) {
  return (
    <span className="pill" data-connection={state} role="status">
      <span className="pill-dot" aria-hidden="true" />
      <span className="visually-hidden">Connection: </span>
      {LABELS[state]}
    </span>
  );
}
