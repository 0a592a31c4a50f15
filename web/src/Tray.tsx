// The runs in the background: how far each is, and what can be done about it.
import { useId, useState } from "react";

import type { Step } from "./address";
import { backgroundRuns } from "./background";
import type { RunEvents } from "./model";
import { TrayRun } from "./TrayRun";
import { useSettled } from "./useSettled";

interface Props {
  runs: RunEvents;
  onOpenRun: (step: Step) => void;
  onCancelRun: (runId: string) => Promise<void>;
}

/** On a small screen the conversation comes first: the line of the tray says enough. */
const ROOMY = window.matchMedia("(min-width: 641px)");

export function Tray({ runs, onOpenRun, onCancelRun }: Props) {
  const list = useId();
  const all = backgroundRuns(runs);
  const working = all.filter(({ status }) => status === "running").length;
  const [chosen, setChosen] = useState<boolean | null>(null);
  // It opens by itself with the first run at work, and stays: what is read must not fold away.
  // A run that ended long ago is at work for an instant, too, while it is replayed.
  const isWorking = useSettled(working > 0);
  const [wasWorking, setWasWorking] = useState(false);
  if (isWorking && !wasWorking) setWasWorking(true);
  const said = summary(all.length, working);
  const open = chosen ?? (wasWorking && ROOMY.matches);

  return (
    <section className="tray" aria-label="Background runs" data-working={working > 0}>
      <h2>
        <button
          type="button"
          aria-expanded={open}
          aria-controls={list}
          onClick={() => setChosen(!open)}
        >
          In the background{" "}
          <span className="tray-count">{said}</span>
        </button>
      </h2>
      <p className="visually-hidden" role="status">
        In the background: {said}
      </p>
      <div id={list} className="tray-list" hidden={!open}>
        {all.length === 0 ? (
          <p className="hint">
            Nothing yet. Ask for something “in the background”: it goes on here while you talk of
            something else.
          </p>
        ) : (
          <ul>
            {all.map((run) => (
              <TrayRun key={run.runId} run={run} onOpen={onOpenRun} onCancel={onCancelRun} />
            ))}
          </ul>
        )}
      </div>
    </section>
  );
}

function summary(all: number, working: number): string {
  if (all === 0) return "nothing";
  const ended = all - working;
  const parts = [working > 0 && `${working} at work`, ended > 0 && `${ended} ended`];
  return parts.filter(Boolean).join(", ");
}
