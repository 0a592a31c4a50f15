// A chat with one agent: its transcript, the runs under each tool call, and the composer.
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useCallback, useMemo, useRef, useState } from "react";

import type { Step } from "./address";
import { Composer } from "./Composer";
import { ConfirmClear } from "./ConfirmClear";
import { type AgentConnection, type ConnectionState, useTurn } from "./connection";
import { EmptyState } from "./EmptyState";
import { LiveStatus } from "./LiveStatus";
import { Message } from "./Message";
import { type RunEvents, unplacedRuns } from "./model";
import { OtherRuns } from "./OtherRuns";
import { Problem } from "./Problem";
import { useSettled } from "./useSettled";
import { useStickToEnd } from "./useStickToEnd";

interface Props {
  agent: AgentConnection;
  connection: ConnectionState;
  runs: RunEvents;
  onOpenRun: (step: Step) => void;
  placeholder: string;
  /** The assistant itself, which can be cleared; a run that is opened as a chat cannot. */
  root?: boolean;
}

export function Chat({ agent, connection, runs, onOpenRun, placeholder, root = false }: Props) {
  // The server keeps the transcript: what is changed here is not sent to it.
  const chat = useAgentChat({ agent, syncMessagesToServer: false });
  const turn = useTurn(agent);
  const [cancelled, setCancelled] = useState(false);
  const [askingToClear, setAskingToClear] = useState(false);
  const [clearFailure, setClearFailure] = useState<string | null>(null);
  const { messages, status, clearError, clearHistory, sendMessage, setMessages, stop } = chat;
  const { regenerate } = chat;
  const { resetLocalState } = runs;
  const busy = status === "submitted" || chat.isStreaming || chat.isRecovering;
  const scroll = useStickToEnd(true);
  const field = useRef<HTMLTextAreaElement>(null);

  const send = useCallback(
    (text: string) => {
      setClearFailure(null);
      setCancelled(false);
      scroll.toEnd();
      field.current?.focus();
      void sendMessage({ text });
    },
    [sendMessage, scroll.toEnd],
  );

  const retry = useCallback(() => {
    setCancelled(false);
    void regenerate();
  }, [regenerate]);

  const cancel = useCallback(() => {
    field.current?.focus();
    setCancelled(true);
    if (turn.requestId !== null && status === "ready") {
      const frame = { type: "cf_agent_chat_request_cancel", id: turn.requestId };
      agent.send(JSON.stringify(frame));
    }
    void stop();
  }, [agent, status, stop, turn.requestId]);

  const clear = useCallback(async () => {
    field.current?.focus();
    const emptyPage = (): void => {
      setMessages([]);
      resetLocalState();
    };
    await stop();
    clearHistory();
    clearError();
    emptyPage();
    try {
      await agent.call("clearRuns", []);
      setClearFailure(null);
    } catch (error) {
      setClearFailure(error instanceof Error ? error.message : String(error));
    }
    // The server does not tell the tab that clears; what it sent before it heard has come by now.
    emptyPage();
  }, [agent, clearError, clearHistory, resetLocalState, setMessages, stop]);

  const settled = useSettled(!busy && connection === "live");
  const unplaced = useMemo(
    () => unplacedRuns(runs, messages, settled),
    [runs, messages, settled],
  );

  const empty = messages.length === 0 && unplaced.length === 0;
  const error = connection === "live" ? (chat.error?.message ?? turn.error) : null;

  return (
    <div className="chat">
      <div
        className="scroll"
        ref={scroll.ref}
        onScroll={scroll.onScroll}
        role="region"
        aria-label="Transcript"
        tabIndex={0}
      >
        {empty && root && <EmptyState onAsk={send} />}
        {empty && !root && !busy && <p className="waiting">Nothing has been said here yet.</p>}
        <div className="messages" role="log" aria-label="Messages" aria-busy={busy}>
          {messages.map((message, index) => (
            <Message
              key={message.id}
              message={message}
              active={busy && index === messages.length - 1}
              runs={runs}
              onOpenRun={onOpenRun}
            />
          ))}
          {busy && messages.at(-1)?.role !== "assistant" && <p className="thinking">Thinking</p>}
        </div>
        {unplaced.length > 0 && <OtherRuns runs={unplaced} onOpenRun={onOpenRun} />}
        <Problem
          error={error}
          clearFailure={clearFailure}
          connection={connection}
          refusal={agent.connectionError?.reason ?? null}
          onRetry={root && !busy && messages.length > 0 ? retry : null}
        />
      </div>
      {!scroll.atEnd && (
        <button
          type="button"
          className="to-end"
          // The focus is where somebody writes: it stays there, or goes there.
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => {
            scroll.toEnd();
            field.current?.focus({ preventScroll: true });
          }}
        >
          Jump to the latest
        </button>
      )}
      <Composer
        field={field}
        busy={busy}
        disabled={connection === "refused"}
        placeholder={placeholder}
        onSend={send}
        onCancel={cancel}
        onClear={root && !empty ? () => setAskingToClear(true) : null}
      />
      {askingToClear && (
        <ConfirmClear
          runs={Object.keys(runs.runsById).length}
          working={Object.values(runs.runsById).filter((run) => run.status === "running").length}
          onClear={() => void clear()}
          onClose={() => setAskingToClear(false)}
        />
      )}
      <LiveStatus
        busy={busy}
        recovering={chat.isRecovering}
        lost={connection === "reconnecting"}
        cancelled={cancelled}
        messages={messages}
      />
    </div>
  );
}
