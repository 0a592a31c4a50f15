// `AgentClient` and `agentFetch` in Node against `CounterAgent`: the plain agent, its edge, its run.
import assert from "node:assert/strict";

import { agentFetch } from "agents/client";

import { client, closeAll, connected, frame, rawSocket, rejection, request } from "../rig/client.mjs";
import { pause, until } from "../rig/report.mjs";

export const kind = "node";

const RESEARCHED = "alpha beta gamma delta epsilon zeta eta theta";

let serial = 0;
const fresh = () => `counter-${process.pid}-${(serial += 1)}`;

/** @param {string} host @param {Record<string, any>} [options] */
const counter = (host, options = {}) =>
  connected(host, { agent: "CounterAgent", name: fresh(), ...options });

/** @type {Record<string, (bench: {server: string}) => Promise<void>>} */
const all = {
  async "identity, then the promised state, then mcp servers greet a client"({ server }) {
    const name = fresh();
    const made = await counter(server, { name });
    await frame(made, "cf_agent_mcp_servers");
    assert.deepEqual(made.frames.slice(0, 3), [
      { type: "cf_agent_identity", name, agent: "counter-agent", stateFollows: true },
      { type: "cf_agent_state", state: { count: 0 } },
      {
        type: "cf_agent_mcp_servers",
        mcp: { servers: {}, tools: [], prompts: [], resources: [] },
      },
    ]);
    assert.deepEqual(made.state, { count: 0 });
  },

  async "increment changes the state before it answers"({ server }) {
    const made = await counter(server);
    assert.equal(await made.call("increment"), 1);
    assert.equal(await made.call("increment", [5]), 6);
    const tail = made.frames.slice(-2).map(({ type, state, result }) => [type, state ?? result]);
    assert.deepEqual(tail, [
      ["cf_agent_state", { count: 6 }],
      ["rpc", 6],
    ]);
    assert.equal(await made.stub.increment(2), 8);
  },

  async "echo gives any JSON value back"({ server }) {
    const made = await counter(server);
    const value = { text: "naïve 🐝 \u2028", list: [1, 2.5, null, true, []], nested: { "": {} } };
    assert.deepEqual(await made.call("echo", [value]), value);
    assert.equal(await made.call("echo", [null]), null);
  },

  async "a method that raises rejects with its text"({ server }) {
    const made = await counter(server);
    assert.equal(await rejection(made.call("fail", ["kaput 🐝"])), "kaput 🐝");
    assert.equal(await made.call("echo", [1]), 1);
  },

  async "a slow call does not hold up another"({ server }) {
    const made = await counter(server);
    /** @type {unknown[]} */
    const order = [];
    const slow = made.call("slow", [400]).then((value) => order.push(value));
    const echo = made.call("echo", ["quick"]).then((value) => order.push(value));
    await Promise.all([slow, echo]);
    assert.deepEqual(order, ["quick", "slow"]);
  },

  async "countTo streams its numbers and ends with done"({ server }) {
    const made = await counter(server);
    /** @type {unknown[]} */
    const chunks = [];
    const result = await made.call("countTo", [5], { onChunk: (chunk) => void chunks.push(chunk) });
    assert.deepEqual(chunks, [1, 2, 3, 4, 5]);
    assert.equal(result, "done");
  },

  async "a method that is not marked is not callable"({ server }) {
    const made = await counter(server);
    assert.equal(await rejection(made.call("secret")), "Method secret is not callable");
    for (const method of ["set_state", "destroy", "sql"]) {
      assert.equal(await rejection(made.call(method)), `Method ${method} is not callable`);
    }
  },

  async "a method that is not there does not exist"({ server }) {
    const made = await counter(server);
    for (const method of ["nope", "constructor", "__class__.__init__"]) {
      assert.equal(await rejection(made.call(method)), `Method ${method} does not exist`);
    }
  },

  async "wrong arguments are answered with an error"({ server }) {
    const made = await counter(server);
    assert.match(await rejection(made.call("increment", [1, 2, 3])), /increment/);
    assert.notEqual(await rejection(made.call("increment", ["a text"])), "");
    assert.equal(await made.call("increment"), 1);
  },

  async "calls made before the socket is open are sent when it is"({ server }) {
    const made = client(server, { agent: "CounterAgent", name: fresh() });
    assert.equal(await made.call("increment", [3]), 3);
  },

  async "state set by one client reaches the others and not itself"({ server }) {
    const name = fresh();
    const [a, b] = [await counter(server, { name }), await counter(server, { name })];
    a.setState({ count: 41 });
    await until(() => countOf(b) === 41, "the other client to see 41");
    assert.equal(await b.call("increment"), 42);
    await until(() => countOf(a) === 42, "the first client to see 42");
    const seen = a.frames.filter(({ type }) => type === "cf_agent_state").map((f) => f.state.count);
    assert.deepEqual(seen, [0, 42]);
  },

  async "a state that is rejected changes nothing"({ server }) {
    const name = fresh();
    /** @type {string[]} */
    const errors = [];
    const a = await counter(server, { name, onStateUpdateError: (/** @type {string} */ e) => errors.push(e) });
    const b = await counter(server, { name });
    a.setState({ count: -1 });
    await until(() => errors.length, "the rejection");
    assert.deepEqual(errors, ["State update rejected"]);
    assert.deepEqual(b.state, { count: 0 });
    assert.equal(await b.call("increment"), 1);
  },

  async "a read-only connection may call but not change the state"({ server }) {
    const name = fresh();
    /** @type {string[]} */
    const errors = [];
    const made = await counter(server, {
      name,
      query: { mode: "readonly" },
      onStateUpdateError: (/** @type {string} */ e) => errors.push(e),
    });
    made.setState({ count: 9 });
    await until(() => errors.length, "the refusal");
    assert.deepEqual(errors, ["Connection is readonly"]);
    assert.equal(await rejection(made.call("increment")), "Connection is readonly");
    assert.equal(await made.call("echo", ["fine"]), "fine");
    assert.deepEqual((await counter(server, { name })).state, { count: 0 });
  },

  async "a silent connection gets replies and no protocol frames"({ server }) {
    const name = fresh();
    const silent = client(server, { agent: "CounterAgent", name, query: { mode: "silent" } });
    assert.equal(await silent.call("echo", ["here"]), "here");
    const other = await counter(server, { name });
    assert.equal(await other.call("increment"), 1);
    assert.equal(await silent.call("increment"), 2);
    assert.deepEqual(new Set(silent.frames.map(({ type }) => type)), new Set(["rpc"]));
  },

  async "a forbidden child closes with 4403 for good"({ server }) {
    const made = client(server, {
      agent: "CounterAgent",
      name: fresh(),
      path: "sub/researcher/forbidden",
    });
    await until(() => made.connectionError, "the refusal");
    assert.deepEqual(made.closes, [
      { code: 4403, reason: "Sub-agent connection rejected (403)" },
    ]);
    await pause(500);
    assert.equal(made.closes.length, 1, "the client came back");
    assert.equal(await rejection(made.call("echo", [1])), "Connection closed");
  },

  async "a forbidden child is refused over HTTP with CORS headers"({ server }) {
    const path = `/agents/counter-agent/${fresh()}/sub/researcher/forbidden/get-messages`;
    const answer = await request(server, path, { headers: { origin: "http://elsewhere" } });
    assert.equal(answer.status, 403);
    assert.equal(answer.headers["access-control-allow-origin"], "*");
  },

  async "an agent that is not registered is an invalid request"({ server }) {
    const answer = await agentFetch({ host: server, agent: "NoSuchAgent", name: "x" });
    assert.equal(answer.status, 400);
    assert.equal(await answer.text(), "Invalid request");
  },

  async "a path that is no agent's is not found"({ server }) {
    for (const path of ["/nothing", "/agents", "/agents/counter-agent"]) {
      assert.equal((await request(server, path)).status, 404, path);
    }
  },

  async "a child of a class that is not registered is not found"({ server }) {
    const name = fresh();
    const path = `/agents/counter-agent/${name}/sub/no-such-class/x`;
    assert.equal((await request(server, path)).status, 404);
    const made = client(server, { agent: "CounterAgent", name, path: "sub/no-such-class/x" });
    await until(() => made.connectionError, "the refusal");
    assert.equal(made.closes[0].code, 4404);
  },

  async "a plain agent has nothing to say over HTTP"({ server }) {
    const answer = await agentFetch({ host: server, agent: "CounterAgent", name: fresh() });
    assert.equal(answer.status, 404);
    assert.equal(await answer.text(), "Not implemented");
  },

  async "get-messages is a list, open to other origins"({ server }) {
    for (const agent of ["ChatAgent", "ThinkAgent"]) {
      const answer = await agentFetch(
        { host: server, agent, name: fresh(), path: "get-messages" },
        { headers: { origin: "http://elsewhere" } },
      );
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get("access-control-allow-origin"), "*");
      assert.deepEqual(await answer.json(), []);
    }
  },

  async "a preflight is answered for every method and header"({ server }) {
    const answer = await request(server, `/agents/chat-agent/${fresh()}/get-messages`, {
      method: "OPTIONS",
      headers: { origin: "http://elsewhere", "access-control-request-method": "GET" },
    });
    assert.equal(answer.status, 200);
    assert.equal(answer.body, "");
    assert.equal(answer.headers["access-control-allow-origin"], "*");
    assert.equal(answer.headers["access-control-allow-methods"], "GET, POST, HEAD, OPTIONS");
    assert.equal(answer.headers["access-control-allow-headers"], "*");
    assert.equal(answer.headers["access-control-max-age"], "86400");
  },

  async "a root's name may hold spaces, emoji and percent signs"({ server }) {
    for (const name of ["two words", "bee 🐝", "100%25", "é"]) {
      const own = `${name} ${fresh()}`;
      const made = await counter(server, { name: own });
      assert.equal(made.frames[0].name, decodeURIComponent(own));
      await made.call("increment");
      assert.deepEqual((await counter(server, { name: own })).state, { count: 1 });
    }
  },

  async "a child's name may hold slashes, spaces, emoji and percent signs"({ server }) {
    const parent = fresh();
    for (const name of ["agent-tool:call/1", "two words", "🐝/%2F", "100%", "sub"]) {
      const path = `sub/researcher/${encodeURIComponent(name)}`;
      const made = await connected(server, { agent: "CounterAgent", name: parent, path });
      const { agent, name: reached } = made.frames.find(({ type }) => type === "cf_agent_identity") ?? {};
      assert.deepEqual({ agent, reached }, { agent: "researcher", reached: name });
    }
  },

  async "names that cannot be routed are refused"({ server }) {
    const long = "x".repeat(1025);
    for (const name of ["%00", "a%00b", long]) {
      for (const path of [
        `/agents/counter-agent/${name}`,
        `/agents/counter-agent/${fresh()}/sub/researcher/${name}`,
      ]) {
        assert.equal((await request(server, path)).status, 400, path.slice(0, 80));
      }
    }
  },

  async "a frame over the limit gets an error and the connection stays"({ server }) {
    const made = await counter(server);
    made.send(JSON.stringify({ type: "app", text: "x".repeat(13 * 2 ** 20) }));
    const error = await frame(made, "ramet_error");
    assert.match(error.error, /12582912|12 MiB|12\.0 MiB/);
    assert.equal(await made.call("echo", ["still here"]), "still here");
    assert.deepEqual(made.closes, []);
  },

  async "a frame that means nothing gets one error and the connection stays"({ server }) {
    const made = await counter(server);
    made.send("this is not JSON");
    const error = await frame(made, "ramet_error");
    assert.equal(typeof error.error, "string");
    assert.equal(await made.call("echo", ["still here"]), "still here");
  },

  async "the Cap'n Web transport is refused"({ server }) {
    const url = `ws://${server}/agents/counter-agent/${fresh()}?__agents_transport=capnweb`;
    const { closes } = await rawSocket(url);
    await until(() => closes.length, "the refusal");
    assert.equal(closes[0].code, 4400);
  },

  async "startReport runs a child without a tool call"({ server }) {
    const name = fresh();
    const made = await counter(server, { name });
    assert.equal(await made.call("startReport", ["bees"]), "bees summary");
    const events = made.frames.filter(({ type }) => type === "agent-tool-event");
    assert.ok(events.every((event) => !("parentToolCallId" in event)));
    assert.deepEqual(
      events.map(({ sequence }) => sequence),
      events.map((_, index) => index),
    );
    const kinds = events.map(({ event }) => event.kind);
    assert.deepEqual([kinds[0], kinds.at(-1)], ["started", "finished"]);
    assert.equal(spoken(events), RESEARCHED);
  },

  async "a new connection is given the run again, frame for frame"({ server }) {
    const name = fresh();
    const made = await counter(server, { name });
    await made.call("startReport", ["bees"]);
    const live = made.frames.filter(({ type }) => type === "agent-tool-event");
    const late = await counter(server, { name });
    await until(
      () => late.frames.some(({ event }) => event?.kind === "finished"),
      "the end of the replay",
    );
    const again = late.frames.filter(({ type }) => type === "agent-tool-event");
    assert.ok(again.every(({ replay }) => replay === true));
    const lasting = live.filter(({ event }) => !event.body?.includes("data-agent-progress"));
    assert.deepEqual(again.map(withoutReplay), lasting.map(withoutReplay));
  },
};

/** @param {{state: unknown}} client */
function countOf({ state }) {
  return typeof state === "object" && state !== null && "count" in state ? state.count : undefined;
}

/** @param {Record<string, any>} frame */
function withoutReplay({ replay, ...rest }) {
  return rest;
}

/** @param {Record<string, any>[]} events */
function spoken(events) {
  return events
    .filter(({ event }) => event.kind === "chunk")
    .map(({ event }) => JSON.parse(event.body))
    .map((chunk) => (chunk.type === "text-delta" ? chunk.delta : ""))
    .join("");
}

/** Each check leaves no client behind. */
export const checks = Object.fromEntries(
  Object.entries(all).map(([name, check]) => [
    name,
    async (/** @type {{server: string}} */ bench) => check(bench).finally(closeAll),
  ]),
);
