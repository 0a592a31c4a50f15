// What runs in the background, and what the conversation is told of it.
import type { UIMessage } from "ai";

import { messageText, type Run, type RunEvents } from "./model";

/** The runs that the assistant has let go of, the newest first; it marks them when it does. */
export function backgroundRuns(runs: RunEvents): Run[] {
  return Object.values(runs.runsById).filter(isBackground).reverse();
}

export function isBackground(run: Run): boolean {
  return run.display?.["background"] === true;
}

/** A message that nobody wrote: it tells what became of a run. */
export interface Told {
  /** How the run ended; null for a milestone. */
  status: string | null;
  /** The first paragraph. */
  headline: string;
  /** What else the assistant was told. */
  rest: string;
}

export function toldBy(message: UIMessage): Told | null {
  const metadata: unknown = message.metadata;
  if (typeof metadata !== "object" || metadata === null || !("runId" in metadata)) return null;
  const status = "status" in metadata ? String(metadata.status) : null;
  const [headline = "", ...rest] = messageText(message).split("\n\n");
  return { status, headline: headline.replace(/^In the background: /, ""), rest: rest.join("\n\n") };
}
