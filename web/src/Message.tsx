// One message: what the user asked, or the parts of an answer in their order.
import type { UIMessage } from "ai";
import { isToolUIPart } from "ai";
import { memo } from "react";

import type { Step } from "./address";
import { toldBy } from "./background";
import { Markdown } from "./Markdown";
import { Notice } from "./Notice";
import { questionText, type Part, type Run, type RunEvents } from "./model";
import { Reasoning } from "./Reasoning";
import { ToolCall } from "./ToolCall";

interface Props {
  message: UIMessage;
  /** This message is being written now. */
  active: boolean;
  runs: RunEvents;
  onOpenRun: (step: Step) => void;
}

export const Message = memo(function Message({ message, active, runs, onOpenRun }: Props) {
  const told = toldBy(message);
  if (told !== null) return <Notice told={told} />;
  if (message.role === "user") {
    return (
      <article className="message user" data-role="user" aria-label="You">
        <p>{questionText(message)}</p>
      </article>
    );
  }
  return (
    <article
      className="message assistant"
      data-role="assistant"
      data-active={active}
      aria-label="Assistant"
    >
      {message.parts.map((part, index) => (
        <MessagePart
          key={partKey(part, index)}
          part={part}
          active={active}
          last={index === message.parts.length - 1}
          runs={isToolUIPart(part) ? runs.getRunsForToolCall(part.toolCallId) : NONE}
          onOpenRun={onOpenRun}
        />
      ))}
    </article>
  );
});

const NONE: Run[] = [];

function partKey(part: Part, index: number): string {
  return isToolUIPart(part) ? part.toolCallId : `${part.type}-${index}`;
}

interface PartProps {
  part: Part;
  active: boolean;
  last: boolean;
  runs: Run[];
  onOpenRun: (step: Step) => void;
}

function MessagePart({ part, active, last, runs, onOpenRun }: PartProps) {
  if (part.type === "text") return <Markdown text={part.text} active={active && last} />;
  if (part.type === "reasoning") return <Reasoning text={part.text} active={active && last} />;
  if (part.type === "source-url") {
    return (
      <a className="source" href={part.url} target="_blank" rel="noreferrer">
        {part.title ?? part.url}
      </a>
    );
  }
  if (isToolUIPart(part)) {
    return <ToolCall part={part} active={active} runs={runs} onOpenRun={onOpenRun} />;
  }
  return null;
}
