import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent, useAgentToolEvents } from "agents/react";

export function Page() {
  const agent = useAgent({ agent: "Assistant", name: "ada" });
  const { messages, sendMessage, stop } = useAgentChat({ agent });
  const runs = useAgentToolEvents({ agent }); // the researchers, by the tool call they work for
  return <pre>{JSON.stringify({ messages, runs: runs.runsById }, null, 2)}</pre>;
}

export {};
