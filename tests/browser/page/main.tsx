// The published hooks on one page, with everything they say laid open for the checks.
import { useAgentChat } from "@cloudflare/ai-chat/react";
import type { UIMessage } from "ai";
import { useAgent, useAgentToolEvents } from "agents/react";
import { Component, type ReactNode, Suspense, useEffect, useLayoutEffect } from "react";
import { createRoot } from "react-dom/client";

import { readConfig } from "./config";
import { noteRendering, probe } from "./probe";

const config = readConfig(window.location.search);

function useConnection() {
  return useAgent({
    agent: config.agent,
    name: config.name,
    sub: config.sub,
    host: config.host,
    protocol: "ws",
    query: config.query,
    minReconnectionDelay: 300,
    maxReconnectionDelay: 600,
  });
}

function Page() {
  const agent = useConnection();
  const events = useAgentToolEvents<UIMessage["parts"][number]>({ agent });

  useEffect(() => {
    const onMessage = (event: MessageEvent): void => {
      if (typeof event.data === "string") probe.frames.push(JSON.parse(event.data));
    };
    const onClose = (event: { code: number; reason: string }): void => {
      probe.closes.push({ code: event.code, reason: event.reason });
    };
    agent.addEventListener("message", onMessage);
    agent.addEventListener("close", onClose);
    return () => {
      agent.removeEventListener("message", onMessage);
      agent.removeEventListener("close", onClose);
    };
  }, [agent]);

  useLayoutEffect(() => {
    const refusal = agent.connectionError;
    Object.assign(probe, {
      identified: agent.identified,
      agentState: agent.state,
      connectionError: refusal && { code: refusal.code, reason: refusal.reason },
      runs: events.runsById,
      runsByToolCallId: events.runsByToolCallId,
      unboundRuns: events.unboundRuns,
      call: agent.call,
      setState: agent.setState,
      resetRuns: events.resetLocalState,
    });
  });

  return (
    <>
      <pre id="runs">{JSON.stringify(events.runsById, null, 1)}</pre>
      {config.chat && (
        <Suspense fallback={<p>loading</p>}>
          <ChatPart agent={agent} />
        </Suspense>
      )}
    </>
  );
}

function ChatPart({ agent }: { agent: ReturnType<typeof useConnection> }) {
  const chat = useAgentChat({
    agent,
    onTurnEnd: (end) => probe.turnEnds.push(end),
    onToolCall: ({ toolCall, addToolOutput }) => {
      if (toolCall.toolName !== "getWeather") return;
      const { city } = toolCall.input as { city: string };
      addToolOutput({ toolCallId: toolCall.toolCallId, output: `sunny in ${city}` });
    },
  });

  useLayoutEffect(() => {
    noteRendering(chat.messages);
    Object.assign(probe, {
      chat: {
        messages: chat.messages,
        status: chat.status,
        isStreaming: chat.isStreaming,
        isServerStreaming: chat.isServerStreaming,
        isRecovering: chat.isRecovering,
        error: chat.error?.message ?? null,
      },
      send: (text: string) => void chat.sendMessage({ text }),
      stop: () => void chat.stop(),
      clear: () => chat.clearHistory(),
      regenerate: () => void chat.regenerate(),
      decide: (id: string, approved: boolean) =>
        void chat.addToolApprovalResponse({ id, approved }),
    });
  });

  return <pre id="messages">{JSON.stringify(chat.messages, null, 1)}</pre>;
}

class Boundary extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override componentDidCatch(error: unknown): void {
    probe.crash = String(error);
  }

  override render(): ReactNode {
    return this.state.failed ? "crashed" : this.props.children;
  }
}

const root = document.getElementById("root");
if (root === null) throw new Error("no #root");
createRoot(root).render(
  <Boundary>
    <Page />
  </Boundary>,
);
