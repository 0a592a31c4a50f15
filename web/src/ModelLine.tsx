// Names the model that answers. The offline one is not a language model, and the page says so.
import { useInfo } from "./info";

export function ModelLine() {
  const info = useInfo();
  if (info instanceof Error) {
    return <p className="model-line">The server did not say which model answers.</p>;
  }
  if (info === null) return <p className="model-line">&nbsp;</p>;
  return (
    <p className="model-line">
      Answered by <strong>{info.model}</strong>
      {info.offline && (
        <span className="wide-only">
          : it decides by rule and quotes what the agents really find
        </span>
      )}
      .
      {info.folder ? (
        <span className="wide-only">
          {" "}
          Plans and builds work on <code>{info.folder}</code>
        </span>
      ) : null}
    </p>
  );
}
