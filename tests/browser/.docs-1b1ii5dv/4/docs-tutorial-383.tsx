import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent, useAgentToolEvents } from "agents/react";
import type { UIMessage } from "ai";
import { StrictMode, Suspense, useState } from "react";
import { createRoot } from "react-dom/client";

type Part = UIMessage["parts"][number];
type Step = { agent: string; name: string };

/** One chat: the assistant's own, or that of an agent at a path below it. */
function Chat({ path, open }: { path: Step[]; open: (path: Step[]) => void }) {
  const agent = useAgent({ agent: "Assistant", name: "ada", ...(path.length ? { sub: path } : {}) });
  const { messages, sendMessage, stop, status } = useAgentChat({ agent });
  const { runsByToolCallId } = useAgentToolEvents<Part>({ agent });
  const [text, setText] = useState("");

  return (
    <section>
      {messages.map((message) => (
        <article key={message.id}>
          <h3>{message.role}</h3>
          {message.parts.map((part, index) => {
            if (part.type === "text") return <p key={index}>{part.text}</p>;
            if (!("toolCallId" in part)) return null;
            const runs = runsByToolCallId[part.toolCallId] ?? [];
            return (
              <div key={index}>
                <strong>{part.type}</strong> {part.state}
                {runs.map((run) => (
                  <blockquote key={run.runId}>
                    {run.display?.icon} {run.display?.name} — {run.status}{" "}
                    <button onClick={() => open([...path, run.subAgent])}>Open as chat</button>
                    <p>
                      <small>{run.progress?.message}</small>
                    </p>
                    <p>{run.parts.map((p) => (p.type === "text" ? p.text : "")).join("")}</p>
                    {run.error && <p role="alert">{run.error}</p>}
                  </blockquote>
                ))}
              </div>
            );
          })}
        </article>
      ))}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void sendMessage({ text });
          setText("");
        }}
      >
        <input value={text} onChange={(event) => setText(event.target.value)} aria-label="Message" />
        <button type="submit">Send</button>
        {status === "streaming" && (
          <button type="button" onClick={() => void stop()}>
            Cancel
          </button>
        )}
      </form>
    </section>
  );
}

function App() {
  const [path, open] = useState<Step[]>([]);
  return (
    <Suspense fallback={<p>Opening…</p>}>
      {path.length > 0 && <button onClick={() => open(path.slice(0, -1))}>Back</button>}
      <Chat key={JSON.stringify(path)} path={path} open={open} />
    </Suspense>
  );
}

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);

export {};
