// Tools of the page and approvals with `useAgentChat` in Chromium: the answer goes on once.
import assert from "node:assert/strict";

import { answer, transcript } from "../rig/tab.mjs";

export const kind = "browser";

/** @typedef {import("../rig/bench.mjs").Bench} Bench */
/** @typedef {import("../rig/tab.mjs").Tab} Tab */
/** @typedef {import("../page/probe").Probe} Probe */
/** @typedef {{toolCallId: string, state: string, output?: unknown, approval?: {id: string}}} Call */

/** The tool calls of the last message. @param {Probe} state @returns {Call[]} */
function calls(state) {
  const parts = state.chat?.messages.at(-1)?.parts ?? [];
  return /** @type {Call[]} */ (parts.filter((part) => part.type.startsWith("tool-")));
}

/** Asks for something dangerous and waits until the page is asked. @param {Tab} tab */
async function asked(tab) {
  await tab.send("danger cats");
  return approvalId(tab);
}

/** @param {Tab} tab */
async function approvalId(tab) {
  const state = await tab.wait(
    (r) => calls(r)[0]?.state === "approval-requested" && r.chat?.status === "ready",
    "the request for an approval",
  );
  return String(calls(state)[0].approval?.id);
}

/** @param {Tab} tab @param {string} text */
async function endsWith(tab, text) {
  await tab.says(text);
  const state = await tab.ended();
  assert.equal(answer(state), text);
  assert.equal(state.chat?.messages.length, 2, JSON.stringify(transcript(state)));
  assert.equal(state.chat?.error, null);
  assert.deepEqual(tab.complaints, []);
  return state;
}

/** How many turns went on by themselves, by the frames that came. @param {Probe} state */
function continuations(state) {
  const frames = state.frames.filter(
    (frame) => frame.type === "cf_agent_use_chat_response" && frame.continuation && frame.done,
  );
  return new Set(frames.map(({ id }) => id)).size;
}

/** @type {Record<string, (bench: Bench) => Promise<void>>} */
export const checks = {
  async "a tool of the page is answered and the answer goes on"(bench) {
    const tab = await bench.tab();
    await tab.send("weather Oslo");
    const state = await endsWith(tab, "Weather: sunny in Oslo");
    assert.deepEqual(
      calls(state).map(({ state: reached, output }) => [reached, output]),
      [["output-available", "sunny in Oslo"]],
    );
    assert.equal(continuations(state), 1);
    await tab.reload();
    await endsWith(tab, "Weather: sunny in Oslo");
  },

  async "a second tab sees the answer go on, once"(bench) {
    const asking = await bench.tab();
    const watching = await bench.tab();
    await asking.send("weather Oslo");
    await endsWith(asking, "Weather: sunny in Oslo");
    const state = await endsWith(watching, "Weather: sunny in Oslo");
    assert.equal(continuations(state), 1);
  },

  async "an approved tool runs and the answer goes on"(bench) {
    const tab = await bench.tab();
    await tab.decide(await asked(tab), true);
    const state = await endsWith(tab, "Executed");
    assert.deepEqual(
      calls(state).map(({ state: reached, output }) => [reached, output]),
      [["output-available", "executed"]],
    );
    await tab.ask("say 2");
  },

  async "a refused tool does not run and the answer goes on"(bench) {
    const tab = await bench.tab();
    await tab.decide(await asked(tab), false);
    const state = await endsWith(tab, "Denied");
    assert.deepEqual(
      calls(state).map(({ state: reached }) => reached),
      ["output-denied"],
    );
  },

  async "an approval can be given after a reload"(bench) {
    const tab = await bench.tab();
    await asked(tab);
    await tab.reload();
    await tab.decide(await approvalId(tab), true);
    await endsWith(tab, "Executed");
  },

  async "an approval in one tab is seen in another"(bench) {
    const asking = await bench.tab();
    const deciding = await bench.tab();
    await asked(asking);
    await deciding.decide(await approvalId(deciding), true);
    await endsWith(deciding, "Executed");
    await endsWith(asking, "Executed");
  },
};
