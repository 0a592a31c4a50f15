// Runs in the background, seen by a page with the published hooks.
import assert from "node:assert/strict";

import { pause } from "../rig/report.mjs";
import { answer, runText, transcript, words } from "../rig/tab.mjs";

export const kind = "browser";

/** @typedef {import("../rig/bench.mjs").Bench} Bench */
/** @typedef {import("../rig/tab.mjs").Tab} Tab */
/** @typedef {import("../page/probe").Probe} Probe */
/** @typedef {import("../page/probe").Run} Run */

const WORDS = "alpha beta gamma delta epsilon zeta eta theta";

/** @param {Probe} state */
function theRun(state) {
  return /** @type {Run} */ (Object.values(state.runs)[0]);
}

/** The conversation once all was told, ids left out. @param {Probe} state */
function told(state) {
  return transcript(state).map((line) => line.replace(/\([^)]*\)/, "(id)"));
}

/** @param {string} text */
function wholeConversation(text) {
  return [
    `user: ${text}`,
    "assistant: Started",
    "assistant: Background run Researcher (id) has reached 'halfway'.",
    "user: Background run Researcher (id) finished.\n\nbees summary",
    "assistant: Result: bees summary",
  ];
}

/** @param {Tab} tab */
async function reported(tab) {
  await tab.wait((r) => answer(r) === "Result: bees summary", "the result as a message", 20_000);
  return tab.ended();
}

/** @param {Tab} tab */
function halfway(tab) {
  return tab.wait((r) => theRun(r)?.milestones?.[0]?.name === "halfway", "the milestone");
}

/** @param {Probe} state */
function isWhole(state) {
  const run = theRun(state);
  assert.equal(Object.keys(state.runs).length, 1);
  assert.equal(run.status, "completed");
  assert.equal(runText(run), WORDS);
  assert.equal(run.summary, "bees summary");
  assert.deepEqual(
    run.milestones?.map(({ name, sequence, data }) => ({ name, sequence, data })),
    [{ name: "halfway", sequence: 0, data: { seen: 4 } }],
  );
}

/** @type {Record<string, (bench: Bench) => Promise<void>>} */
export const checks = {
  async "the turn ends at once and the result arrives as a message"(bench) {
    const tab = await bench.tab();
    await tab.send("background bees 250");
    await tab.says("Started");
    const started = await tab.ended();
    assert.equal(theRun(started)?.status, "running");
    assert.deepEqual(started.runsByToolCallId, { [`${theRun(started).parentToolCallId}`]: [theRun(started)] });
    const seen = await tab.wait((r) => (theRun(r).progress?.fraction ?? 0) >= 0.25, "progress");
    assert.equal(theRun(seen).status, "running");
    const state = await reported(tab);
    assert.deepEqual(told(state), wholeConversation("background bees 250"));
    isWhole(state);
  },

  async "the conversation goes on meanwhile"(bench) {
    const tab = await bench.tab();
    await tab.send("background bees 300");
    await tab.says("Started");
    await tab.ended();
    await tab.send("say 3");
    // What the run has to tell may come before it or behind it.
    const answered = (/** @type {Probe} */ r) => transcript(r).includes(`assistant: ${words(3)}`);
    const state = await tab.wait(answered, "the answer");
    assert.equal(theRun(state).status, "running");
    isWhole(await reported(tab));
  },

  async "a reload in the middle shows how far it is"(bench) {
    const tab = await bench.tab();
    await tab.send("background bees 400");
    await halfway(tab);
    await tab.reload();
    const again = await halfway(tab);
    assert.equal(theRun(again).status, "running");
    assert.ok((theRun(again).progress?.fraction ?? 0) >= 0.5, "the progress was forgotten");
    const state = await reported(tab);
    assert.deepEqual(told(state), wholeConversation("background bees 400"));
    isWhole(state);
    await tab.reload();
    const later = await tab.wait((r) => theRun(r)?.status === "completed", "the replay");
    assert.deepEqual(told(later), told(state));
    isWhole(later);
  },

  async "a cut that outlasts the run is healed"(bench) {
    const tab = await bench.tab();
    await tab.send("background bees 200");
    await tab.wait((r) => runText(theRun(r) ?? { parts: [] }).includes("beta"), "the run to begin");
    bench.front.block();
    await pause(2500);
    bench.front.unblock();
    const state = await reported(tab);
    assert.deepEqual(told(state), wholeConversation("background bees 200"));
    isWhole(state);
  },

  async "a second tab is told the same"(bench) {
    const tab = await bench.tab();
    const other = await bench.tab();
    await tab.send("background bees 100");
    const [one, two] = [await reported(tab), await reported(other)];
    assert.deepEqual(told(two), told(one));
    isWhole(two);
  },
};
