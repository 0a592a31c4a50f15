// One run in the background, as a row of the tray.
import { type RefObject, useLayoutEffect, useRef, useState } from "react";

import type { Step } from "./address";
import { AgentIcon } from "./AgentIcon";
import { type Run, RUN_STATUS, runTitle } from "./model";
import { RunProgress } from "./RunProgress";

interface Props {
  run: Run;
  onOpen: (step: Step) => void;
  onCancel: (runId: string) => Promise<void>;
}

export function TrayRun({ run, onOpen, onCancel }: Props) {
  const opener = useRef<HTMLButtonElement>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const title = runTitle(run);

  const cancel = async (): Promise<void> => {
    try {
      setFailure(null);
      await onCancel(run.runId);
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
    }
  };

  return (
    <li className="tray-run" data-run={run.runId} data-status={run.status}>
      <div className="tray-run-line">
        <AgentIcon agentType={run.agentType} />
        <h3>{title}</h3>
        <span className="badge" data-status={run.status}>
          {RUN_STATUS[run.status]}
        </span>
        <span className="tray-actions">
          {run.status === "running" && (
            <CancelButton title={title} onCancel={() => void cancel()} next={opener} />
          )}
          <button
            ref={opener}
            type="button"
            className="link-button"
            aria-label={`Open as chat: ${title}`}
            onClick={() => onOpen(run.subAgent)}
          >
            Open
          </button>
        </span>
      </div>
      <RunProgress run={run} />
      {(failure ?? run.error) && run.status !== "aborted" && (
        <p className="run-error">{failure ?? run.error}</p>
      )}
    </li>
  );
}

interface CancelProps {
  title: string;
  onCancel: () => void;
  /** What gets the focus when the run ends under it. */
  next: RefObject<HTMLButtonElement | null>;
}

function CancelButton({ title, onCancel, next }: CancelProps) {
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    const own = button.current;
    return () => {
      if (own !== null && document.activeElement === own) next.current?.focus();
    };
  }, [next]);
  return (
    <button
      ref={button}
      type="button"
      className="link-button danger"
      aria-label={`Cancel: ${title}`}
      onClick={onCancel}
    >
      Cancel
    </button>
  );
}
