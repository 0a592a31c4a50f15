// The page: one assistant per user, its conversation, and beside it the run that is opened as a chat.
import { Suspense, useCallback, useRef } from "react";

import { pathToHash, type Step, usePath, userFromAddress } from "./address";
import { Chat } from "./Chat";
import { useClearedElsewhere, useConnection, useConnectionState } from "./connection";
import { DrillIn } from "./DrillIn";
import { ErrorBoundary } from "./ErrorBoundary";
import { Header } from "./Header";
import { useRuns } from "./model";
import { Tray } from "./Tray";

const user = userFromAddress(window.location.search);

export function App() {
  const agent = useConnection(user);
  const runs = useRuns(agent);
  const connection = useConnectionState(agent);
  const [path, open] = usePath();
  const opener = useRef<Element | null>(null);
  const resetRuns = runs.resetLocalState;

  const clearedElsewhere = useCallback(() => {
    resetRuns();
    open([]);
  }, [resetRuns, open]);
  useClearedElsewhere(agent, clearedElsewhere);

  const openRun = useCallback(
    (step: Step) => {
      opener.current = document.activeElement;
      open([step]);
    },
    [open],
  );
  const leave = useCallback(() => {
    open(path.slice(0, -1));
    if (opener.current instanceof HTMLElement) opener.current.focus();
  }, [open, path]);

  const cancelRun = useCallback(
    async (runId: string): Promise<void> => {
      await agent.call("cancelRun", [runId]);
    },
    [agent],
  );
  const openedRun = path.length === 1 ? runs.runsById[path[0]?.name ?? ""] : undefined;

  return (
    <div className={path.length > 0 ? "page split" : "page"}>
      <Header user={user} connection={connection} />
      <main className="columns">
        <section className="column conversation" aria-label="Conversation with the assistant">
          <Tray runs={runs} onOpenRun={openRun} onCancelRun={cancelRun} />
          <Suspense fallback={<p className="waiting">Opening the conversation…</p>}>
            <Chat
              agent={agent}
              connection={connection}
              runs={runs}
              onOpenRun={openRun}
              root
              placeholder="Ask about Python, compare two things, or ask for a plan"
            />
          </Suspense>
        </section>
        {path.length > 0 && (
          <ErrorBoundary key={pathToHash(path)} onLeave={() => open([])}>
            <DrillIn user={user} path={path} run={openedRun} onOpen={open} onLeave={leave} />
          </ErrorBoundary>
        )}
      </main>
    </div>
  );
}
