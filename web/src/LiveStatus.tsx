// Tells a screen reader when an answer starts and, once, what it said.
import type { UIMessage } from "ai";
import { useEffect, useRef, useState } from "react";

import { messageText } from "./model";

interface Props {
  busy: boolean;
  recovering: boolean;
  messages: UIMessage[];
}

export function LiveStatus({ busy, recovering, messages }: Props) {
  const [said, setSaid] = useState("");
  const wasBusy = useRef(false);

  useEffect(() => {
    if (busy && !wasBusy.current) setSaid("The assistant is answering.");
    if (!busy && wasBusy.current) {
      const last = messages.at(-1);
      setSaid(last?.role === "assistant" ? `Answer: ${messageText(last)}` : "The answer ended.");
    }
    wasBusy.current = busy;
  }, [busy, messages]);

  return (
    <p className="visually-hidden" aria-live="polite" data-testid="live-status">
      {recovering ? "The answer was interrupted and is being taken up again." : said}
    </p>
  );
}
