// One browser tab with the test page in it.
import { pause, until } from "./report.mjs";

const RENDER_DELAY_MS = 200;

/** @typedef {import("../page/probe").Probe} Probe */

export class Tab {
  /** @param {import("playwright-core").Page} page @param {string} url */
  constructor(page, url) {
    this.page = page;
    this.url = url;
    /** What the page sent, frame by frame, since it was last loaded. @type {any[]} */
    this.sent = [];
    /** @type {string[]} */
    this.complaints = [];
    page.on("websocket", (socket) => {
      socket.on("framesent", ({ payload }) => this.sent.push(JSON.parse(String(payload))));
    });
    page.on("pageerror", (error) => this.complaints.push(error.message));
    page.on("console", (line) => {
      if (line.type() === "error") this.complaints.push(line.text());
    });
  }

  async open() {
    await this.page.goto(this.url);
    await this.mounted();
  }

  /** Loads the page anew, as F5 does; what was sent before is forgotten. */
  async reload() {
    this.sent.length = 0;
    await this.page.reload();
    await this.mounted();
  }

  mounted() {
    const chat = new URL(this.url).searchParams.get("chat") !== "no";
    return this.wait(
      (r) => r.connectionError !== null || (r.identified && (r.chat !== null || !chat)),
      "the page to be connected",
    );
  }

  /** Everything the hooks say now. @returns {Promise<Probe>} */
  state() {
    return this.page.evaluate(() => JSON.parse(JSON.stringify(window.__ramet)));
  }

  /**
   * Waits until `condition`, which sees what the hooks say, is true; gives the state then.
   *
   * @param {(probe: Probe) => unknown} condition
   * @param {string} what
   * @param {number} [milliseconds]
   */
  async wait(condition, what, milliseconds = 15_000) {
    return until(
      async () => {
        const state = await this.state().catch(() => undefined);
        return state !== undefined && condition(state) ? state : undefined;
      },
      what,
      milliseconds,
    ).then((state) => /** @type {Probe} */ (state));
  }

  /** @param {string} text */
  send(text) {
    return this.page.evaluate((value) => window.__ramet.send(value), text);
  }

  /** Sends and waits until the turn has ended. @param {string} text */
  async ask(text) {
    await this.send(text);
    return this.ended();
  }

  /**
   * Waits until nothing is under way and the last message is an answer. The hook shows messages up
   * to 50 ms late, so that in a tab that only watches "not streaming" comes before the last words.
   */
  async ended() {
    await this.wait(
      ({ chat }) =>
        chat !== null &&
        !chat.isStreaming &&
        ["ready", "error"].includes(chat.status) &&
        chat.messages.at(-1)?.role === "assistant",
      "the turn to end",
      30_000,
    );
    await pause(RENDER_DELAY_MS);
    return this.state();
  }

  /** @param {string} text */
  says(text) {
    return this.wait((r) => answer(r).includes(text), `the answer to contain ${text}`);
  }

  stop() {
    return this.page.evaluate(() => window.__ramet.stop());
  }

  clear() {
    return this.page.evaluate(() => window.__ramet.clear());
  }

  regenerate() {
    return this.page.evaluate(() => window.__ramet.regenerate());
  }

  /** Answers a tool call that asks for an approval. @param {string} id @param {boolean} approved */
  decide(id, approved) {
    return this.page.evaluate(([a, b]) => window.__ramet.decide(a, b), /** @type {const} */ ([id, approved]));
  }

  /** @param {string} method @param {unknown[]} args */
  call(method, args) {
    return this.page.evaluate(([m, a]) => window.__ramet.call(m, a), /** @type {const} */ ([method, args]));
  }
}

/** The transcript as `role: text` lines. @param {Probe} state */
export function transcript(state) {
  return (state.chat?.messages ?? []).map((message) => `${message.role}: ${textOf(message)}`);
}

/** The text of the last answer, "" before there is one. @param {Probe} state */
export function answer(state) {
  const last = state.chat?.messages.at(-1);
  return last?.role === "assistant" ? textOf(last) : "";
}

/** @param {import("ai").UIMessage} message */
export function textOf(message) {
  return message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** The text of a run. @param {{parts: {type: string}[]}} run */
export function runText(run) {
  return run.parts
    .map((part) => ("text" in part && part.type === "text" ? String(part.text) : ""))
    .join("");
}

/** Words `w1 … wN`. @param {number} count */
export function words(count) {
  return Array.from({ length: count }, (_, index) => `w${index + 1}`).join(" ");
}
