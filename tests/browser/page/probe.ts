// What the page shows to the checks, as `window.__ramet`.
import type { UIMessage } from "ai";
import type { useAgentToolEvents } from "agents/react";

type Events = ReturnType<typeof useAgentToolEvents<UIMessage["parts"][number]>>;
export type Run = Events["unboundRuns"][number];

export interface ChatState {
  messages: UIMessage[];
  status: string;
  isStreaming: boolean;
  isServerStreaming: boolean;
  isRecovering: boolean;
  error: string | null;
}

export interface Probe {
  /** Which document this is: another one after a reload. */
  loadedAt: number;
  identified: boolean;
  agentState: unknown;
  connectionError: { code: number; reason: string } | null;
  chat: ChatState | null;
  runs: Record<string, Run>;
  runsByToolCallId: Record<string, Run[]>;
  unboundRuns: Run[];
  /** Every frame that came, parsed, in order. */
  frames: Record<string, unknown>[];
  /** Each different rendering of the transcript, as `role: text` lines. */
  renderings: string[][];
  closes: { code: number; reason: string }[];
  turnEnds: { outcome: string; messageIds?: string[]; error?: string; replay: boolean }[];
  crash: string | null;
  send: (text: string) => void;
  stop: () => void;
  clear: () => void;
  regenerate: () => void;
  decide: (approvalId: string, approved: boolean) => void;
  call: (method: string, args: unknown[]) => Promise<unknown>;
  setState: (state: unknown) => void;
  resetRuns: () => void;
}

declare global {
  interface Window {
    __ramet: Probe;
  }
}

const missing = (): never => {
  throw new Error("That part of the page is not mounted.");
};

export const probe: Probe = {
  loadedAt: performance.timeOrigin,
  identified: false,
  agentState: undefined,
  connectionError: null,
  chat: null,
  runs: {},
  runsByToolCallId: {},
  unboundRuns: [],
  frames: [],
  renderings: [],
  closes: [],
  turnEnds: [],
  crash: null,
  send: missing,
  stop: missing,
  clear: missing,
  regenerate: missing,
  decide: missing,
  call: missing,
  setState: missing,
  resetRuns: missing,
};

window.__ramet = probe;

export function textOf(message: UIMessage): string {
  return message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

export function noteRendering(messages: UIMessage[]): void {
  const rendering = messages.map((message) => `${message.role}: ${textOf(message)}`);
  const last = probe.renderings.at(-1);
  if (JSON.stringify(last) !== JSON.stringify(rendering)) probe.renderings.push(rendering);
}
