// Tells a screen reader when an answer starts and, once, what it said.
import type { UIMessage } from "ai";
import { useEffect, useRef, useState } from "react";

import { messageText, plainText } from "./model";

const RECOVERING = "The answer was interrupted and is being taken up again.";

interface Props {
  busy: boolean;
  recovering: boolean;
  lost: boolean;
  /** The user of this tab cancelled the last answer. */
  cancelled: boolean;
  messages: UIMessage[];
}

export function LiveStatus({ busy, recovering, lost, cancelled, messages }: Props) {
  const [said, setSaid] = useState("");
  const wasBusy = useRef(false);

  useEffect(() => {
    if (lost) return;
    if (busy && !wasBusy.current) setSaid("The assistant is answering.");
    if (!busy && wasBusy.current) {
      setSaid(cancelled ? "Cancelled" : ending(messages.at(-1)));
    }
    wasBusy.current = busy;
  }, [busy, cancelled, lost, messages]);

  return (
    <p className="visually-hidden" aria-live="polite" data-testid="live-status">
      {lost ? "Connection lost" : recovering ? RECOVERING : said}
    </p>
  );
}

function ending(last: UIMessage | undefined): string {
  if (last?.role !== "assistant") return "The answer ended.";
  return `Answer: ${plainText(messageText(last))}`;
}
