// What a run did and said. It folds away once it is done: the answer then holds what came of it.
// In the background it is folded from the start, since the tray shows how far it is.
import { useLayoutEffect, useRef, useState } from "react";

import { isBackground } from "./background";
import type { Run } from "./model";
import { RunParts } from "./RunParts";

export function RunWork({ run, title }: { run: Run; title: string }) {
  const details = useRef<HTMLDetailsElement>(null);
  const [chosen, setChosen] = useState<boolean | null>(null);
  const done = run.status === "completed";
  const open = chosen ?? !(done || isBackground(run));

  useLayoutEffect(() => {
    // A reader who is in there keeps it open.
    if (done && details.current?.contains(document.activeElement)) setChosen(true);
  }, [done]);

  if (run.parts.length === 0) return null;
  return (
    <details className="run-work" ref={details} open={open}>
      <summary
        onClick={(event) => {
          event.preventDefault();
          setChosen(!open);
        }}
      >
        {run.status === "running" ? "What it is doing" : "What it did"}
      </summary>
      <RunParts parts={run.parts} running={run.status === "running"} label={`Work of ${title}`} />
    </details>
  );
}
