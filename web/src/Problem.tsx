// What went wrong, as text, and what can be done about it.
import type { ConnectionState } from "./connection";

interface Props {
  error: string | null;
  clearFailure: string | null;
  connection: ConnectionState;
  refusal: string | null;
  onRetry: (() => void) | null;
}

export function Problem({ error, clearFailure, connection, refusal, onRetry }: Props) {
  if (connection === "refused") {
    return (
      <p className="problem" role="alert">
        The server refused this connection{refusal ? `: ${refusal}` : ""}. There may be no such run
        any more.
      </p>
    );
  }
  if (connection === "reconnecting") {
    return (
      <p className="problem soft" role="status">
        The connection was lost. Everything shown is kept; the page catches up when it is back.
      </p>
    );
  }
  return (
    <>
      {clearFailure !== null && (
        <p className="problem" role="alert">
          The runs could not be cleared: {clearFailure}
        </p>
      )}
      {error !== null && (
        <div className="problem" role="alert">
          <p>The answer failed: {error}</p>
          {onRetry && (
            <button type="button" className="button quiet" onClick={onRetry}>
              Try again
            </button>
          )}
        </div>
      )}
    </>
  );
}
