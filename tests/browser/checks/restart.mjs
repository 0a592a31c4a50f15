// Pages that stay open while the server is killed and started again on the same data.
import assert from "node:assert/strict";

import { answer, runText, transcript, words } from "../rig/tab.mjs";

export const kind = "restart";

/** @typedef {import("../rig/bench.mjs").Bench} Bench */
/** @typedef {import("../page/probe").Probe} Probe */
/** @typedef {import("../page/probe").Run} Run */

const WORDS = "alpha beta gamma delta epsilon zeta eta theta";

/** @param {Probe} state */
function theRun(state) {
  return /** @type {Run} */ (Object.values(state.runs)[0]);
}

/** How the tool call of the last answer stands. @param {Probe} state */
function toolState(state) {
  const parts = state.chat?.messages.at(-1)?.parts ?? [];
  return String(parts.flatMap((part) => ("toolCallId" in part ? [part.state] : []))[0]);
}

/** @param {Bench} bench */
async function killAndStart(bench) {
  await bench.victim?.kill();
  await bench.victim?.start();
}

/** @param {import("../rig/tab.mjs").Tab} tab */
function settled(tab) {
  return tab.wait(
    (r) => r.identified && r.chat?.status === "ready" && !r.chat.isStreaming && r.chat.error === null,
    "the page to come to rest",
    20_000,
  );
}

/** Event frames that are kept: progress is not. @param {Probe} state */
function kept(state) {
  return state.frames
    .filter(({ type }) => type === "agent-tool-event")
    .map((/** @type {any} */ { replay, ...frame }) => frame)
    .filter(({ event }) => !event.body?.includes("data-agent-progress"));
}

/** @type {Record<string, (bench: Bench) => Promise<void>>} */
export const checks = {
  async "an answer cut short by a kill goes on and shows every word once"(bench) {
    const tab = await bench.tab();
    await tab.send("say 80 60");
    await tab.says("w8");
    await killAndStart(bench);
    await tab.wait((r) => answer(r) === words(80), "the rest of the answer", 20_000);
    const state = await settled(tab);
    assert.equal(answer(state), words(80));
    assert.equal(state.chat?.messages.length, 2);
    await tab.reload();
    const stored = await tab.wait((r) => answer(r) !== "", "the stored part");
    assert.deepEqual(transcript(stored), transcript(state));
    await tab.send("say 3");
    await tab.wait((r) => answer(r) === words(3), "the next answer");
  },

  async "a run cut short by a kill goes on under its card and ends whole"(bench) {
    const tab = await bench.tab();
    await tab.send("research bees 400");
    await tab.wait(
      (r) => theRun(r) !== undefined && runText(theRun(r)).includes("gamma"),
      "the run to say gamma",
    );
    await killAndStart(bench);
    const state = await tab.wait((r) => theRun(r)?.status === "completed", "the run to end", 20_000);
    assert.equal(runText(theRun(state)), WORDS);
    assert.equal(Object.keys(state.runs).length, 1);
    const rested = await settled(tab);
    assert.equal(toolState(rested), "output-available");
    await tab.reload();
    const again = await tab.wait((r) => theRun(r)?.status === "completed", "the replay");
    assert.equal(runText(theRun(again)), WORDS);
    await tab.send("say 3");
    await tab.wait((r) => answer(r) === words(3), "the next answer");
  },

  async "a run in the background goes on after a kill and is reported once"(bench) {
    const tab = await bench.tab();
    await tab.send("background bees 500");
    await tab.wait(
      (r) => theRun(r) !== undefined && runText(theRun(r)).includes("gamma"),
      "the run to say gamma",
    );
    await killAndStart(bench);
    await tab.wait((r) => answer(r) === "Result: bees summary", "the result", 30_000);
    await tab.reload();
    const state = await tab.wait((r) => theRun(r)?.status === "completed", "the replay");
    assert.equal(runText(theRun(state)), WORDS);
    const lines = transcript(state);
    assert.equal(lines.filter((line) => line.includes("finished.")).length, 1);
    assert.equal(lines.filter((line) => line.includes("halfway")).length, 1);
    assert.equal(lines.filter((line) => line === "assistant: Result: bees summary").length, 1);
  },

  async "what had ended is all there after a kill"(bench) {
    const tab = await bench.tab();
    await tab.send("research bees");
    await tab.wait((r) => theRun(r)?.status === "completed", "the run to end");
    const before = await tab.ended();
    await killAndStart(bench);
    await tab.reload();
    const after = await tab.wait(
      (r) => answer(r) !== "" && theRun(r)?.status === "completed",
      "the stored conversation",
    );
    assert.deepEqual(transcript(after), transcript(before));
    assert.deepEqual(kept(after), kept(before));
    const child = await bench.tab({ sub: [theRun(after).subAgent] });
    await child.wait((r) => answer(r) === WORDS, "the child's transcript");
  },
};
