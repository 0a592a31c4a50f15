// What a connection to an agent is doing, and the frames that concern its turns.
import { useEffect, useRef, useState } from "react";
import { useAgent } from "agents/react";

import { ASSISTANT, SERVER, type Step } from "./address";

export type AgentConnection = ReturnType<typeof useConnection>;
export type ConnectionState = "connecting" | "live" | "reconnecting" | "refused";

/** Connects to a user's assistant, or to the agent at a path below it. */
export function useConnection(user: string, sub?: readonly Step[]) {
  return useAgent({ agent: ASSISTANT, name: user, ...(sub ? { sub } : {}), ...SERVER });
}

/** Live means that the agent has introduced itself on this socket. */
export function useConnectionState(agent: AgentConnection): ConnectionState {
  const wasLive = useRef(false);
  if (agent.identified) wasLive.current = true;
  if (agent.connectionError) return "refused";
  if (agent.identified) return "live";
  return wasLive.current ? "reconnecting" : "connecting";
}

export interface Turn {
  /** The request that is being answered, whichever tab sent it. */
  requestId: string | null;
  /** Why the last request failed, as the server put it. */
  error: string | null;
}

const IDLE: Turn = { requestId: null, error: null };

interface Frame {
  type?: unknown;
  id?: unknown;
  body?: unknown;
  done?: unknown;
  error?: unknown;
  outcome?: unknown;
}

/**
 * Follows the running turn by its frames. The chat hook's `stop()` knows only turns that this tab
 * sent or resumed; the request id lets a tab that merely watches cancel too.
 */
export function useTurn(agent: AgentConnection): Turn {
  const [turn, setTurn] = useState<Turn>(IDLE);
  useEffect(() => {
    const forget = (): void => setTurn(IDLE);
    const stop = onFrame(agent, (frame) => setTurn((previous) => nextTurn(previous, frame)));
    agent.addEventListener("close", forget);
    return () => {
      stop();
      agent.removeEventListener("close", forget);
    };
  }, [agent]);
  return turn;
}

function nextTurn(turn: Turn, frame: Frame): Turn {
  if (frame.type === "cf_agent_chat_clear") return IDLE;
  if (frame.type !== "cf_agent_use_chat_response" || typeof frame.id !== "string") return turn;
  if (frame.error === true) {
    return { requestId: null, error: typeof frame.body === "string" ? frame.body : "failed" };
  }
  if (frame.done === true) {
    return { requestId: null, error: frame.outcome === "error" ? turn.error : null };
  }
  return turn.requestId === frame.id ? turn : { requestId: frame.id, error: null };
}

/** Runs `cleared` when another tab cleared the conversation. */
export function useClearedElsewhere(agent: AgentConnection, cleared: () => void): void {
  useEffect(
    () =>
      onFrame(agent, (frame) => {
        if (frame.type === "cf_agent_chat_clear") cleared();
      }),
    [agent, cleared],
  );
}

function onFrame(agent: AgentConnection, handle: (frame: Frame) => void): () => void {
  const listener = (event: MessageEvent): void => {
    const frame = parseFrame(event.data);
    if (frame !== null) handle(frame);
  };
  agent.addEventListener("message", listener);
  return () => agent.removeEventListener("message", listener);
}

function parseFrame(data: unknown): Frame | null {
  if (typeof data !== "string") return null;
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === "object" && value !== null ? value : null;
  } catch {
    return null;
  }
}
