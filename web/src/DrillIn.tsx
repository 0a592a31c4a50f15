// A run opened as a chat of its own: its transcript, its live stream, its own runs, and a way back.
import { Suspense, useCallback, useEffect, useRef } from "react";

import type { Step } from "./address";
import { Chat } from "./Chat";
import { ConnectionPill } from "./ConnectionPill";
import { useConnection, useConnectionState } from "./connection";
import { type Run, useRuns } from "./model";
import { RunProgress } from "./RunProgress";

interface Props {
  user: string;
  path: Step[];
  /** The run as its parent sees it, where that is known. */
  run: Run | undefined;
  onOpen: (path: readonly Step[]) => void;
  onLeave: () => void;
}

export function DrillIn({ user, path, run, onOpen, onLeave }: Props) {
  const agent = useConnection(user, path);
  const runs = useRuns(agent);
  const connection = useConnectionState(agent);
  const heading = useRef<HTMLHeadingElement>(null);
  const leaf = path.at(-1);

  useEffect(() => heading.current?.focus(), []);
  useLeaveOnEscape(onLeave);

  const openRun = useCallback((step: Step) => onOpen([...path, step]), [onOpen, path]);

  return (
    <aside className="column drill-in" aria-label="A run as a chat" data-testid="drill-in">
      <header className="drill-in-header">
        <button type="button" className="button quiet" onClick={onLeave}>
          <span aria-hidden="true">←</span> Back
        </button>
        <div className="drill-in-title">
          <h2 ref={heading} tabIndex={-1} title={leaf?.name}>
            {leaf?.agent}
          </h2>
        </div>
        <ConnectionPill state={connection} />
      </header>
      {run?.status === "running" && run.progress !== undefined && (
        <div className="drill-in-progress">
          <RunProgress run={run} />
        </div>
      )}
      <Suspense fallback={<p className="waiting">Opening the run…</p>}>
        <Chat
          agent={agent}
          connection={connection}
          runs={runs}
          onOpenRun={openRun}
          placeholder={`Ask ${leaf?.agent ?? "the agent"} something more`}
        />
      </Suspense>
    </aside>
  );
}

function useLeaveOnEscape(leave: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && !event.defaultPrevented && !event.isComposing) leave();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [leave]);
}
