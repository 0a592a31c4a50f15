// `useAgentChat` in Chromium: streaming, and everything that can happen to a page meanwhile.
import assert from "node:assert/strict";

import { pause, until } from "../rig/report.mjs";
import { answer, transcript, words } from "../rig/tab.mjs";

export const kind = "browser";

/** @typedef {import("../rig/bench.mjs").Bench} Bench */
/** @typedef {import("../page/probe").Probe} Probe */

const SLOW = 60;

/** The answer grew word by word to what was expected, and was never anything else on the way.
 * @param {Probe} state @param {string} expected */
function grewTo(state, expected) {
  const seen = state.renderings.map((rendering) => rendering.at(-1) ?? "");
  const answers = seen.filter((line) => line.startsWith("assistant: ")).map((line) => line.slice(11));
  for (const text of answers) {
    assert.ok(expected.startsWith(text), `The page showed ${JSON.stringify(text)}`);
  }
  assert.equal(answers.at(-1), expected);
  return new Set(answers).size;
}

/** No rendering ever had the question or the answer twice. @param {Probe} state */
function nothingTwice(state) {
  for (const rendering of state.renderings) {
    assert.ok(rendering.length <= 2, `The page showed ${JSON.stringify(rendering)}`);
  }
}

/** @type {Record<string, (bench: Bench) => Promise<void>>} */
export const checks = {
  async "an answer is streamed word by word"(bench) {
    const tab = await bench.tab();
    const state = await tab.ask(`say 20 ${SLOW}`);
    assert.ok(grewTo(state, words(20)) >= 6, "the answer came in lumps");
    assert.equal(state.chat?.status, "ready");
    assert.match(state.chat?.messages.at(-1)?.id ?? "", /^asst_/);
    nothingTwice(state);
    assert.deepEqual(tab.complaints, []);
  },

  async "the page is told how a turn ended"(bench) {
    const tab = await bench.tab();
    const state = await tab.ask("say 2");
    assert.deepEqual(
      state.turnEnds.map(({ outcome, messageIds }) => ({ outcome, messageIds })),
      [{ outcome: "completed", messageIds: [state.chat?.messages[0].id] }],
    );
  },

  async "reasoning is a part of its own before the text"(bench) {
    const tab = await bench.tab();
    const state = await tab.ask("think 4");
    const parts = state.chat?.messages.at(-1)?.parts ?? [];
    const shown = parts.flatMap((part) => (part.type === "reasoning" || part.type === "text" ? [[part.type, part.text]] : []));
    assert.deepEqual(shown, [
      ["reasoning", "r1 r2 r3 r4"],
      ["text", "Thought"],
    ]);
  },

  async "a second question follows the first answer"(bench) {
    const tab = await bench.tab();
    await tab.ask("say 2");
    await tab.send("say 3");
    const state = await tab.wait((r) => answer(r) === words(3), "the second answer");
    assert.deepEqual(transcript(state), [
      "user: say 2",
      `assistant: ${words(2)}`,
      "user: say 3",
      `assistant: ${words(3)}`,
    ]);
  },

  async "a reload in mid-stream takes the answer up again"(bench) {
    const tab = await bench.tab();
    await tab.send(`say 60 ${SLOW}`);
    await tab.says("w8");
    await tab.reload();
    const early = await tab.says("w10");
    assert.ok(answer(early).length < words(60).length, "the stream was not live any more");
    const state = await tab.ended();
    grewTo(state, words(60));
    nothingTwice(state);
    const acks = tab.sent.filter(({ type }) => type === "cf_agent_stream_resume_ack");
    assert.equal(acks.length, 1);
    assert.equal(state.chat?.error, null);
  },

  async "a reload after the end shows the same transcript"(bench) {
    const tab = await bench.tab();
    const before = await tab.ask("say 5");
    await tab.reload();
    const after = await tab.wait((r) => answer(r) === words(5), "the stored answer");
    assert.deepEqual(transcript(after), transcript(before));
    assert.deepEqual(
      after.chat?.messages.map(({ id }) => id),
      before.chat?.messages.map(({ id }) => id),
    );
  },

  async "a connection cut in mid-stream is taken up again"(bench) {
    const tab = await bench.tab();
    await tab.send(`say 60 ${SLOW}`);
    await tab.says("w6");
    bench.front.cut();
    await tab.wait((r) => r.closes.length > 0, "the close");
    await tab.says("w60");
    const state = await tab.ended();
    assert.deepEqual(transcript(state), [`user: say 60 ${SLOW}`, `assistant: ${words(60)}`]);
    assert.equal(state.chat?.error, null);
    nothingTwice(state);
    await tab.reload();
    await tab.wait((r) => answer(r) === words(60), "the stored answer");
  },

  async "no word is shown twice on the way after a cut"(bench) {
    const tab = await bench.tab();
    await tab.send(`say 60 ${SLOW}`);
    await tab.says("w6");
    bench.front.cut();
    await tab.wait((r) => r.closes.length > 0, "the close");
    await tab.says("w60");
    grewTo(await tab.ended(), words(60));
  },

  async "a second tab watches the answer grow"(bench) {
    const tab = await bench.tab();
    const observer = await bench.tab();
    await tab.send(`say 30 ${SLOW}`);
    const mid = await observer.says("w4");
    assert.equal(mid.chat?.isServerStreaming, true);
    assert.equal(mid.chat?.status, "ready");
    await tab.ended();
    const state = await observer.ended();
    assert.ok(grewTo(state, words(30)) >= 6, "the observer got lumps");
    nothingTwice(state);
    assert.equal(state.chat?.isServerStreaming, false);
  },

  async "a tab opened in mid-stream joins it"(bench) {
    const tab = await bench.tab();
    await tab.send(`say 60 ${SLOW}`);
    await tab.says("w5");
    const late = await bench.tab();
    const joined = await late.says("w7");
    assert.ok(answer(joined).startsWith("w1 w2 w3"), "the beginning is missing");
    await tab.ended();
    const state = await late.ended();
    grewTo(state, words(60));
    nothingTwice(state);
  },

  async "stop keeps what was said"(bench) {
    const tab = await bench.tab();
    await tab.send(`say 200 ${SLOW}`);
    await tab.says("w6");
    await tab.stop();
    await until(
      async () => (await tab.state()).chat?.isStreaming === false,
      "the stream to stop",
    );
    await pause(400);
    const stopped = answer(await tab.state());
    assert.ok(words(200).startsWith(stopped) && stopped.includes("w6"), stopped);
    assert.ok(!stopped.includes("w60"), stopped);
    await tab.reload();
    const stored = await tab.wait((r) => answer(r) !== "", "the stored part");
    assert.ok(answer(stored).startsWith("w1 w2 w3 w4 w5 w6"), answer(stored));
    assert.ok(!answer(stored).includes("w60"), answer(stored));
    await tab.send("say 2");
    await tab.wait((r) => answer(r) === words(2), "the next answer");
  },

  async "a failure keeps what was said and names the error"(bench) {
    const tab = await bench.tab();
    await tab.send("fail");
    const state = await tab.wait((r) => r.chat?.status === "error", "the error");
    assert.equal(state.chat?.error, "scripted failure");
    assert.equal(answer(state), "partial");
    await tab.reload();
    const stored = await tab.wait((r) => answer(r) === "partial", "the stored part");
    assert.deepEqual(transcript(stored), ["user: fail", "assistant: partial"]);
    await tab.send("say 2");
    await tab.wait((r) => answer(r) === words(2), "the next answer");
  },

  async "clear empties both tabs for good"(bench) {
    const tab = await bench.tab();
    const other = await bench.tab();
    await tab.ask("say 3");
    await other.wait((r) => answer(r) === words(3), "the answer in the other tab");
    await tab.clear();
    await tab.wait((r) => r.chat?.messages.length === 0, "this tab to be empty");
    await other.wait((r) => r.chat?.messages.length === 0, "the other tab to be empty");
    await tab.reload();
    await pause(300);
    assert.deepEqual(transcript(await tab.state()), []);
    const state = await tab.ask("say 2");
    assert.deepEqual(transcript(state), ["user: say 2", `assistant: ${words(2)}`]);
  },

  async "clear in mid-stream ends the answer"(bench) {
    const tab = await bench.tab();
    const other = await bench.tab();
    await tab.send(`say 100 ${SLOW}`);
    await other.says("w4");
    await tab.clear();
    await other.wait((r) => r.chat?.messages.length === 0, "the other tab to be empty");
    await pause(500);
    assert.deepEqual(transcript(await other.state()), [], "something came back");
    // In the clearing tab the hook may still render a chunk that was on its way; not what is stored.
    await tab.reload();
    await pause(300);
    assert.deepEqual(transcript(await tab.state()), [], "something was stored");
  },

  async "regenerate replaces the answer"(bench) {
    const tab = await bench.tab();
    const before = await tab.ask("say 5");
    await tab.regenerate();
    const id = before.chat?.messages.at(-1)?.id;
    await tab.wait(
      (r) => answer(r) === words(5) && r.chat?.messages.at(-1)?.id !== id,
      "another answer",
    );
    const after = await tab.ended();
    assert.deepEqual(transcript(after), ["user: say 5", `assistant: ${words(5)}`]);
    await tab.reload();
    const stored = await tab.wait((r) => answer(r) === words(5), "the stored answer");
    assert.deepEqual(transcript(stored), transcript(after));
  },

  async "a question asked offline is answered once the server is back"(bench) {
    const tab = await bench.tab();
    await tab.ask("say 2");
    bench.front.block();
    await tab.wait((r) => !r.identified, "the loss to be noticed");
    await tab.send("say 4");
    await pause(300);
    bench.front.unblock();
    await tab.wait((r) => answer(r) === words(4), "the answer");
    const state = await tab.ended();
    assert.deepEqual(transcript(state), [
      "user: say 2",
      `assistant: ${words(2)}`,
      "user: say 4",
      `assistant: ${words(4)}`,
    ]);
    await tab.reload();
    const stored = await tab.wait((r) => answer(r) === words(4), "the stored answer");
    assert.equal(stored.chat?.messages.length, 4);
  },

  async "two tabs that ask at once are both answered"(bench) {
    const tab = await bench.tab();
    const other = await bench.tab();
    await tab.send(`say 12 ${SLOW}`);
    await other.says("w3");
    await other.send("say 3");
    const done = (/** @type {Probe} */ r) => transcript(r).filter((line) => line === `assistant: ${words(3)}`).length === 1;
    for (const one of [tab, other]) {
      const state = await one.wait((r) => done(r) && !r.chat?.isStreaming, "both answers");
      assert.equal(state.chat?.messages.length, 4, JSON.stringify(transcript(state)));
      assert.ok(transcript(state).includes(`assistant: ${words(12)}`));
    }
  },

  async "a page from another origin may talk to the agents"(bench) {
    const { host, port } = bench.server;
    const tab = await bench.tab({ host: `${host}:${port}` });
    const state = await tab.ask("say 3");
    assert.equal(answer(state), words(3));
    await tab.reload();
    await tab.wait((r) => answer(r) === words(3), "the stored answer");
    assert.deepEqual(tab.complaints, []);
  },
};
