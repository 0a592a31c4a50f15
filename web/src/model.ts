// The types that the components share, and small readings of them.
import type { DynamicToolUIPart, ToolUIPart, UIMessage } from "ai";
import { useAgentToolEvents } from "agents/react";

import type { AgentConnection } from "./connection";

export type Part = UIMessage["parts"][number];
export type ToolPart = ToolUIPart | DynamicToolUIPart;
export type RunEvents = ReturnType<typeof useAgentToolEvents<Part>>;
export type Run = RunEvents["unboundRuns"][number];

export function useRuns(agent: AgentConnection): RunEvents {
  return useAgentToolEvents<Part>({ agent });
}

export function messageText(message: UIMessage): string {
  return message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** What a user message asks: an agent that is started by another gets its question as an object. */
export function questionText(message: UIMessage): string {
  const text = messageText(message);
  if (!text.startsWith("{")) return text;
  try {
    const input: { query?: unknown; goal?: unknown; task?: unknown } = JSON.parse(text);
    const question = input.query ?? input.goal ?? input.task;
    return typeof question === "string" ? question : text;
  } catch {
    return text;
  }
}

/** Markdown without its marks, to be read aloud. */
export function plainText(markdown: string): string {
  return markdown
    .replace(/^[ \t]*(?:```.*|#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+|\|?[-:| ]*-{3}[-:| ]*$)/gm, "")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/\*\*(\S(?:.*?\S)?)\*\*/g, "$1")
    .replace(/`+([^`]*)`+/g, "$1")
    .replace(/[ \t]*\|[ \t]*/g, " ")
    .trim();
}

/**
 * The runs that have no tool call to stand under: those that never had one and, once the
 * conversation is settled, those whose call is no longer in it.
 */
export function unplacedRuns(
  runs: RunEvents,
  messages: readonly UIMessage[],
  settled: boolean,
): Run[] {
  if (!settled) return runs.unboundRuns;
  const shown = new Set<string>();
  for (const message of messages) {
    for (const part of message.parts) if ("toolCallId" in part) shown.add(part.toolCallId);
  }
  return Object.values(runs.runsById).filter(
    ({ parentToolCallId }) => parentToolCallId === undefined || !shown.has(parentToolCallId),
  );
}

/** A value as a person would want it on one line: an object by its values where they are simple. */
export function preview(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  if (typeof value === "object" && !Array.isArray(value)) {
    const values: unknown[] = Object.values(value).filter((item) => item !== null);
    if (values.every((item) => ["string", "number", "boolean"].includes(typeof item))) {
      return values.join(" · ");
    }
  }
  return JSON.stringify(value) ?? "";
}

export const RUN_STATUS: Record<Run["status"], string> = {
  running: "Working",
  completed: "Done",
  error: "Failed",
  aborted: "Cancelled",
  interrupted: "Interrupted",
};

export function runTitle(run: Run): string {
  return run.display?.name ?? run.agentType;
}
