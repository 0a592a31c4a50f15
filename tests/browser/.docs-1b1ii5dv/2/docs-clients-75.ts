import { AgentClient } from "agents/client";
import { WebSocket } from "ws";

const client = new AgentClient<unknown, { count: number }>({
  agent: "CounterAgent",
  name: "c",
  host: "127.0.0.1:8000",
  WebSocket,
  onStateUpdate: (state, source) => console.log(source, state),
});
await client.ready;

const count = await client.call("increment", [2]);
await client.call("countTo", [3], {
  stream: { onChunk: (n) => console.log(n), onDone: (last) => console.log(count, last) },
});
client.close();

export {};
