// A chat turn as frames on a plain socket: what no hook shows, for `ChatAgent` and `ThinkAgent`.
import assert from "node:assert/strict";

import { rawSocket, request } from "../rig/client.mjs";
import { until } from "../rig/report.mjs";

export const kind = "node";

/** @typedef {Awaited<ReturnType<typeof rawSocket>>} Raw */

const SEGMENTS = { ChatAgent: "chat-agent", ThinkAgent: "think-agent" };

let serial = 0;

/** @param {{server: string, agent: string}} bench */
function address({ server, agent }) {
  const segment = SEGMENTS[/** @type {keyof typeof SEGMENTS} */ (agent)];
  return { host: server, path: `/agents/${segment}/turns-${process.pid}-${(serial += 1)}` };
}

/** @param {string} id @param {string} text */
function asked(id, text) {
  return { id: `user-${id}`, role: "user", parts: [{ type: "text", text }] };
}

/** @param {Raw} raw @param {string} text @param {string} [id] @param {unknown[]} [earlier] */
function ask(raw, text, id = `req${(serial += 1)}`, earlier = []) {
  const messages = [...earlier, asked(id, text)];
  const body = JSON.stringify({ messages, trigger: "submit-message" });
  raw.socket.send(
    JSON.stringify({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } }),
  );
  return id;
}

/** @param {Raw} raw @param {string} id */
function ended(raw, id) {
  return until(
    () => raw.frames.find((f) => f.type === "cf_agent_use_chat_response" && f.id === id && f.done),
    "the end of the turn",
  );
}

/** @param {Raw} raw @param {string} id */
function responses(raw, id) {
  return raw.frames.filter((f) => f.type === "cf_agent_use_chat_response" && f.id === id);
}

/** @type {Record<string, (bench: {server: string, agent: string}) => Promise<void>>} */
export const checks = {
  async "a turn starts with start and start-step, numbered from 0"(bench) {
    const { host, path } = address(bench);
    const raw = await rawSocket(`ws://${host}${path}`);
    const id = ask(raw, "say 3");
    await ended(raw, id);
    const frames = responses(raw, id).filter(({ body, done }) => body && !done);
    assert.deepEqual(
      frames.map(({ seq }) => seq),
      frames.map((_, index) => index),
    );
    const chunks = frames.map(({ body }) => JSON.parse(body));
    assert.deepEqual(chunks.slice(0, 2).map(({ type }) => type), ["start", "start-step"]);
    assert.match(chunks[0].messageId, /^asst_/);
    const deltas = chunks.filter(({ type }) => type === "text-delta");
    assert.equal(deltas.map(({ delta }) => delta).join(""), "w1 w2 w3");
    raw.socket.close();
  },

  async "the transcript comes before done, and done names the question"(bench) {
    const { host, path } = address(bench);
    const raw = await rawSocket(`ws://${host}${path}`);
    const id = ask(raw, "say 2");
    const { outcome, messageIds, body } = (await ended(raw, id)) ?? {};
    assert.deepEqual({ outcome, messageIds, body }, {
      outcome: "completed",
      messageIds: [`user-${id}`],
      body: "",
    });
    const types = raw.frames.map(({ type, done }) => (done ? "done" : type));
    const before = types.slice(0, types.indexOf("done"));
    assert.ok(before.includes("cf_agent_chat_messages"), "no transcript before done");
    assert.equal(types.filter((type) => type === "done").length, 1);
    raw.socket.close();
  },

  async "get-messages gives the question and the answer"(bench) {
    const { host, path } = address(bench);
    const raw = await rawSocket(`ws://${host}${path}`);
    const id = ask(raw, "say 4");
    await ended(raw, id);
    const messages = JSON.parse((await request(host, `${path}/get-messages`)).body);
    assert.deepEqual(
      messages.map((/** @type {any} */ { role }) => role),
      ["user", "assistant"],
    );
    assert.equal(messages[0].id, `user-${id}`);
    assert.match(messages[1].id, /^asst_/);
    const said = messages[1].parts.filter((/** @type {any} */ { type }) => type === "text");
    assert.equal(said.map((/** @type {any} */ { text }) => text).join(""), "w1 w2 w3 w4");
    raw.socket.close();
  },

  async "a cancelled turn ends as aborted and keeps what was said"(bench) {
    const { host, path } = address(bench);
    const raw = await rawSocket(`ws://${host}${path}`);
    const id = ask(raw, "say 200 30");
    await until(() => JSON.stringify(raw.frames).includes("w5"), "the fifth word");
    raw.socket.send(JSON.stringify({ type: "cf_agent_chat_request_cancel", id }));
    assert.equal((await ended(raw, id))?.outcome, "aborted");
    const body = (await request(host, `${path}/get-messages`)).body;
    assert.match(body, /w1 w2 w3 w4 w5/);
    assert.doesNotMatch(body, /w200/);
    raw.socket.close();
  },

  async "a turn that fails says so in an error frame"(bench) {
    const { host, path } = address(bench);
    const raw = await rawSocket(`ws://${host}${path}`);
    const id = ask(raw, "fail");
    await ended(raw, id);
    const error = responses(raw, id).find((frame) => frame.error);
    assert.equal(error?.body, "scripted failure");
    assert.match((await request(host, `${path}/get-messages`)).body, /partial/);
    raw.socket.close();
  },

  async "a chat request that is malformed ends at once with an error"(bench) {
    const { host, path } = address(bench);
    const raw = await rawSocket(`ws://${host}${path}`);
    const init = { method: "POST", body: JSON.stringify({ messages: "none" }) };
    raw.socket.send(JSON.stringify({ type: "cf_agent_use_chat_request", id: "bad", init }));
    const end = await ended(raw, "bad");
    assert.equal(end?.error, true);
    assert.notEqual(end?.body, "");
    raw.socket.close();
  },

  async "two questions at once are answered one after the other"(bench) {
    const { host, path } = address(bench);
    const [a, b] = [await rawSocket(`ws://${host}${path}`), await rawSocket(`ws://${host}${path}`)];
    const first = ask(a, "say 10 20", "first");
    await until(() => JSON.stringify(a.frames).includes("w2"), "the first answer to begin");
    const second = ask(b, "say 3", "second", [asked("first", "say 10 20")]);
    await ended(a, second);
    const order = a.frames.filter(({ done }) => done).map(({ id }) => id);
    assert.deepEqual(order, [first, second]);
    const startOfSecond = a.frames.findIndex(({ id }) => id === second);
    const endOfFirst = a.frames.findIndex(({ id, done }) => id === first && done);
    assert.ok(startOfSecond > endOfFirst, "the turns overlapped");
    a.socket.close();
    b.socket.close();
  },

  async "an idle agent says that there is nothing to resume"(bench) {
    const { host, path } = address(bench);
    const raw = await rawSocket(`ws://${host}${path}`);
    raw.socket.send(JSON.stringify({ type: "cf_agent_stream_resume_request", probeId: "p1" }));
    const none = await until(
      () => raw.frames.find(({ type }) => type === "cf_agent_stream_resume_none"),
      "the answer to the probe",
    );
    assert.deepEqual(none, { type: "cf_agent_stream_resume_none", reason: "idle", probeId: "p1" });
    raw.socket.close();
  },

  async "chat frames come before the identity on a connection in mid-stream"(bench) {
    const { host, path } = address(bench);
    const first = await rawSocket(`ws://${host}${path}`);
    const id = ask(first, "say 100 30");
    await until(() => JSON.stringify(first.frames).includes("w3"), "the answer to begin");
    const late = await rawSocket(`ws://${host}${path}`);
    await until(() => late.frames.some(({ type }) => type === "cf_agent_identity"), "the greeting");
    assert.deepEqual(late.frames[0], { type: "cf_agent_stream_resuming", id });
    late.socket.send(JSON.stringify({ type: "cf_agent_stream_resume_ack", id }));
    await until(() => late.frames.some((f) => f.replayComplete), "the end of the replay");
    await until(() => JSON.stringify(late.frames).includes("w9"), "live frames after the replay");
    const numbers = responses(late, id)
      .filter(({ seq }) => seq !== undefined)
      .map(({ seq }) => seq);
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index),
    );
    first.socket.send(JSON.stringify({ type: "cf_agent_chat_request_cancel", id }));
    await ended(first, id);
    first.socket.close();
    late.socket.close();
  },
};
