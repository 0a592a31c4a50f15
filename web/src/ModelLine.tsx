// Names the model that answers. The offline one is not a language model, and the page says so.
import { useEffect, useState } from "react";
import { z } from "zod";

const Info = z.object({
  model: z.string(),
  offline: z.boolean(),
  folder: z.string().nullish(),
});
type Info = z.infer<typeof Info>;

export function ModelLine() {
  const [info, setInfo] = useState<Info | null>(null);
  const [failed, setFailed] = useState(false);

  useEffect(() => {
    const abort = new AbortController();
    fetch("/demo/info", { signal: abort.signal })
      .then((response) => response.json())
      .then((value: unknown) => setInfo(Info.parse(value)))
      .catch(() => setFailed(!abort.signal.aborted));
    return () => abort.abort();
  }, []);

  if (failed) return <p className="model-line">The server did not say which model answers.</p>;
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
          Plans read <code>{info.folder}</code>
        </span>
      ) : null}
    </p>
  );
}
