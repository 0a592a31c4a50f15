// What the other agent said and did, in its order: reasoning, its own tool calls, text.
import { isToolUIPart } from "ai";

import { Markdown } from "./Markdown";
import type { Part } from "./model";
import { Reasoning } from "./Reasoning";
import { SimpleToolCall } from "./SimpleToolCall";
import { useStickToEnd } from "./useStickToEnd";

interface Props {
  parts: Part[];
  running: boolean;
  label: string;
}

export function RunParts({ parts, running, label }: Props) {
  const scroll = useStickToEnd(running);
  if (parts.length === 0) return null;
  return (
    <div
      className="run-parts"
      ref={scroll.ref}
      onScroll={scroll.onScroll}
      role="region"
      aria-label={label}
      tabIndex={0}
    >
      {parts.map((part, index) => (
        <RunPart
          key={isToolUIPart(part) ? part.toolCallId : `${part.type}-${index}`}
          part={part}
          running={running}
          last={index === parts.length - 1}
        />
      ))}
    </div>
  );
}

function RunPart({ part, running, last }: { part: Part; running: boolean; last: boolean }) {
  const active = running && last;
  if (part.type === "text") return <Markdown text={part.text} active={active} />;
  if (part.type === "reasoning") return <Reasoning text={part.text} active={active} />;
  if (isToolUIPart(part)) return <SimpleToolCall part={part} active={running} />;
  return null;
}
