import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent, useAgentToolEvents } from "agents/react";
import type { UIMessage } from "ai";

type Notes = { titles: string[] };

export function Notebook() {
  const agent = useAgent<Notes>({ agent: "Notebook", name: "ada" });
  return (
    <>
      <ul>{agent.state?.titles.map((title) => <li key={title}>{title}</li>)}</ul>
      <button onClick={() => void agent.call("add", ["QUIC", "Over UDP."])}>Add</button>
    </>
  );
}

export function Conversation({ user, run }: { user: string; run?: { agent: string; name: string } }) {
  const agent = useAgent({ agent: "Assistant", name: user, ...(run ? { sub: [run] } : {}) });
  const chat = useAgentChat({ agent });
  const runs = useAgentToolEvents<UIMessage["parts"][number]>({ agent });

  const clear = async () => {
    chat.clearHistory();
    runs.resetLocalState();
  };
  return (
    <>
      <p>{chat.messages.length} messages, {Object.keys(runs.runsById).length} runs</p>
      <button onClick={() => void chat.sendMessage({ text: "Compare TCP and QUIC" })}>Ask</button>
      <button onClick={() => void chat.stop()}>Cancel</button>
      <button onClick={() => void clear()}>Clear</button>
    </>
  );
}

export {};
