// `useAgentToolEvents` in Chromium: runs live, after reloads and cuts, and opened as chats.
import assert from "node:assert/strict";

import { pause } from "../rig/report.mjs";
import { answer, runText, transcript } from "../rig/tab.mjs";

export const kind = "browser";

/** @typedef {import("../rig/bench.mjs").Bench} Bench */
/** @typedef {import("../page/probe").Probe} Probe */
/** @typedef {import("../page/probe").Run} Run */

const WORDS = "alpha beta gamma delta epsilon zeta eta theta";
const PACE = 150;

/** The run of the only tool call, once there is one. @param {Probe} state */
function theRun(state) {
  return /** @type {Run | undefined} */ (Object.values(state.runs)[0]);
}

/** @param {Probe} state */
function toolPart(state) {
  const parts = state.chat?.messages.at(-1)?.parts ?? [];
  return /** @type {any} */ (parts.find((part) => part.type.startsWith("tool-")));
}

/** What a finished research must look like, however it was watched.
 * @param {Probe} state @param {{tool?: string, agentType?: string}} [expected] */
function researched(state, { tool = "research", agentType = "Researcher" } = {}) {
  const run = theRun(state);
  assert.ok(run, "there is no run");
  const call = toolPart(state);
  assert.equal(run.runId, `agent-tool:${call.toolCallId}`);
  assert.equal(run.parentToolCallId, call.toolCallId);
  assert.equal(run.agentType, agentType);
  assert.equal(run.status, "completed");
  assert.equal(run.summary, "bees summary");
  assert.equal(run.error, undefined);
  assert.deepEqual(run.inputPreview, { topic: "bees", ms: PACE });
  assert.deepEqual(run.subAgent, { agent: agentType, name: run.runId });
  assert.equal(runText(run), WORDS);
  assert.deepEqual(
    (run.milestones ?? []).map(({ name, sequence, data }) => ({ name, sequence, data })),
    [{ name: "halfway", sequence: 0, data: { seen: 4 } }],
  );
  assert.equal(Object.keys(state.runs).length, 1);
  assert.deepEqual(state.unboundRuns, []);
  assert.equal(call.type, `tool-${tool}`);
  assert.equal(call.state, "output-available");
  assert.deepEqual(call.input, { topic: "bees", ms: PACE });
  assert.equal(call.output, "bees summary");
  assert.equal(answer(state), "Report: bees summary");
}

/** @param {import("../rig/tab.mjs").Tab} tab @param {string} word */
function runSays(tab, word) {
  return tab.wait((r) => Object.values(r.runs).some((run) => runText(run).includes(word)), `the run to say ${word}`);
}

/** Waits until the run and the turn have both ended. @param {import("../rig/tab.mjs").Tab} tab */
async function allEnded(tab) {
  await tab.wait((r) => theRun(r)?.status !== undefined && theRun(r)?.status !== "running", "the run to end");
  return tab.ended();
}

/** Event frames without what only a replay has or lacks. @param {Probe} state */
function lasting(state) {
  return state.frames
    .filter(({ type }) => type === "agent-tool-event")
    .map((/** @type {any} */ { replay, ...frame }) => frame)
    .filter(({ event }) => !event.body?.includes("data-agent-progress"));
}

/** @type {Record<string, (bench: Bench) => Promise<void>>} */
export const checks = {
  async "a run is seen live under its tool call"(bench) {
    const tab = await bench.tab();
    await tab.send(`research bees ${PACE}`);
    const mid = await runSays(tab, "gamma");
    const run = theRun(mid);
    assert.equal(run?.status, "running");
    assert.ok(!runText(/** @type {Run} */ (run)).includes("theta"), "the run was not live");
    assert.ok((run?.progress?.fraction ?? 0) > 0, "no progress was seen");
    assert.notEqual(toolPart(mid)?.state, "output-available");
    researched(await allEnded(tab));
  },

  async "every event of a run has a number of its own"(bench) {
    const tab = await bench.tab();
    await tab.send(`research bees ${PACE}`);
    const state = await allEnded(tab);
    const numbers = state.frames
      .filter(({ type }) => type === "agent-tool-event")
      .map(({ sequence }) => sequence);
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index),
    );
  },

  async "a reload in the middle of a run loses and doubles nothing"(bench) {
    const tab = await bench.tab();
    await tab.send(`research bees ${PACE}`);
    await runSays(tab, "beta");
    await tab.reload();
    const mid = await runSays(tab, "epsilon");
    assert.equal(theRun(mid)?.status, "running");
    researched(await allEnded(tab));
  },

  async "a reload after the end gives the run again, frame for frame"(bench) {
    const tab = await bench.tab();
    await tab.send(`research bees ${PACE}`);
    const live = await allEnded(tab);
    await tab.reload();
    await tab.wait((r) => answer(r) !== "" && theRun(r)?.status === "completed", "the replay");
    const again = await tab.state();
    researched(again);
    assert.deepEqual(lasting(again), lasting(live));
  },

  async "a cut in the middle of a run loses and doubles nothing"(bench) {
    const tab = await bench.tab();
    await tab.send(`research bees ${PACE}`);
    await runSays(tab, "gamma");
    bench.front.cut();
    await tab.wait((r) => r.closes.length > 0, "the close");
    researched(await allEnded(tab));
  },

  async "a cut that outlasts the run is healed by the replay"(bench) {
    const tab = await bench.tab();
    await tab.send(`research bees ${PACE}`);
    await runSays(tab, "beta");
    bench.front.block();
    await pause(PACE * 12);
    bench.front.unblock();
    await tab.wait((r) => answer(r).startsWith("Report"), "the answer");
    researched(await allEnded(tab));
  },

  async "a second tab sees the same run"(bench) {
    const tab = await bench.tab();
    const observer = await bench.tab();
    await tab.send(`research bees ${PACE}`);
    await runSays(observer, "gamma");
    await allEnded(tab);
    researched(await allEnded(observer));
  },

  async "a child of the other family streams the same way"(bench) {
    const tab = await bench.tab();
    await tab.send(`think-research bees ${PACE}`);
    await runSays(tab, "gamma");
    const expected = { tool: "think-research", agentType: "ThinkResearcher" };
    researched(await allEnded(tab), expected);
    await tab.reload();
    await tab.wait((r) => answer(r) !== "" && theRun(r)?.status === "completed", "the replay");
    researched(await tab.state(), expected);
  },

  async "a reload in the middle of a child of the other family"(bench) {
    const tab = await bench.tab();
    await tab.send(`think-research bees ${PACE}`);
    await runSays(tab, "delta");
    await tab.reload();
    researched(await allEnded(tab), { tool: "think-research", agentType: "ThinkResearcher" });
  },

  async "two runs stand in order under one tool call"(bench) {
    const tab = await bench.tab();
    await tab.send("compare bees wasps");
    await tab.wait((r) => Object.keys(r.runs).length === 2, "two runs");
    const state = await tab.ended();
    const call = toolPart(state);
    const runs = state.runsByToolCallId[call.toolCallId];
    assert.deepEqual(
      runs.map(({ order, status, summary }) => [order, status, summary]),
      [
        [0, "completed", "bees summary"],
        [1, "completed", "wasps summary"],
      ],
    );
    assert.deepEqual(runs.map(runText), [WORDS, WORDS]);
    assert.deepEqual(call.output, {
      a: { query: "bees", summary: "bees summary" },
      b: { query: "wasps", summary: "wasps summary" },
    });
    assert.match(answer(state), /bees.*wasps/);
  },

  async "a run that fails is named and does not stop its sibling"(bench) {
    const tab = await bench.tab();
    const state = await tab.ask("compare bees wasps fail");
    const call = toolPart(state);
    const [first, second] = state.runsByToolCallId[call.toolCallId];
    assert.deepEqual([first.status, first.summary], ["completed", "bees summary"]);
    assert.deepEqual([second.status, second.error], ["error", "scripted failure"]);
    assert.equal(runText(second), "alpha beta gamma delta");
    assert.deepEqual(call.output, {
      a: { query: "bees", summary: "bees summary" },
      b: { query: "wasps", error: "scripted failure" },
    });
    assert.match(answer(state), /wasps: scripted failure/);
    await tab.reload();
    await tab.wait((r) => Object.keys(r.runs).length === 2 && answer(r) !== "", "the replay");
    const again = (await tab.state()).runsByToolCallId[call.toolCallId];
    assert.deepEqual(again.map(({ status }) => status), ["completed", "error"]);
  },

  async "stop cancels the run"(bench) {
    const tab = await bench.tab();
    await tab.send("research bees 400");
    await runSays(tab, "beta");
    await tab.stop();
    const state = await tab.wait((r) => theRun(r)?.status === "aborted", "the run to be aborted");
    const said = runText(/** @type {Run} */ (theRun(state)));
    await pause(1000);
    assert.equal(runText(/** @type {Run} */ (theRun(await tab.state()))), said);
    await tab.reload();
    await tab.wait((r) => theRun(r)?.status === "aborted", "the replay");
  },

  async "a finished run opens as a chat with its transcript"(bench) {
    const tab = await bench.tab();
    await tab.send(`research bees ${PACE}`);
    const run = theRun(await allEnded(tab));
    assert.ok(run);
    const child = await bench.tab({ sub: [run.subAgent] });
    const state = await child.wait((r) => answer(r) === WORDS, "the child's answer");
    assert.deepEqual(
      state.chat?.messages.map(({ role }) => role),
      ["user", "assistant"],
    );
    assert.match(transcript(state)[0], /bees/);
    const identity = state.frames.find(({ type }) => type === "cf_agent_identity");
    assert.deepEqual([identity?.agent, identity?.name], ["researcher", run.runId]);
  },

  async "a run under way opens as a chat and streams on"(bench) {
    const tab = await bench.tab();
    await tab.send("research bees 300");
    const run = theRun(await runSays(tab, "alpha"));
    assert.ok(run);
    const child = await bench.tab({ sub: [run.subAgent] });
    const mid = await child.says("beta");
    assert.ok(!answer(mid).includes("theta"), "the child was not live");
    await tab.ended();
    const state = await child.ended();
    assert.equal(answer(state), WORDS);
    assert.equal(state.chat?.messages.length, 2);
  },

  async "a run that never was cannot be opened"(bench) {
    const tab = await bench.tab({ sub: [{ agent: "Researcher", name: "agent-tool:made-up" }] });
    const state = await tab.state();
    assert.equal(state.connectionError?.code, 4404);
  },

  async "a run without a tool call is unbound"(bench) {
    const tab = await bench.tab({ agent: "CounterAgent", chat: "no" });
    assert.equal(await tab.call("startReport", ["bees"]), "bees summary");
    const state = await tab.wait((r) => r.unboundRuns[0]?.status === "completed", "the run");
    assert.deepEqual(state.runsByToolCallId, {});
    assert.equal(runText(state.unboundRuns[0]), WORDS);
    await tab.reload();
    await tab.wait((r) => r.unboundRuns[0]?.summary === "bees summary", "the replay");
  },
};
