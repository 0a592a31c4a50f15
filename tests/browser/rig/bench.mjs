// What a browser check works with: a front of its own, and tabs of one browser profile.
import { Front } from "./front.mjs";
import { Tab } from "./tab.mjs";

const FRAMES_TOLD = 25;

let serial = 0;

export class Bench {
  /**
   * @param {import("playwright-core").Browser} browser
   * @param {{host: string, port: number}} server
   * @param {{agent: string, pages: string | null, victim?: import("./victim.mjs").Victim | null}} options
   */
  constructor(browser, server, { agent, pages, victim = null }) {
    this.victim = victim;
    this.browser = browser;
    this.server = server;
    this.agent = agent;
    this.front = new Front(server, pages);
    this.name = `check ${process.pid} ${(serial += 1)}`;
    /** @type {Tab[]} */
    this.tabs = [];
    /** What pages complained of in checks that use no tab. @type {string[]} */
    this.complaints = [];
    /** @type {import("playwright-core").BrowserContext | null} */
    this.context = null;
  }

  async start() {
    await this.front.listen();
    this.context = await this.browser.newContext();
  }

  async close() {
    await this.context?.close();
    await this.front.close();
  }

  /**
   * Opens a tab on this check's own agent.
   *
   * @param {{agent?: string, sub?: {agent: string, name: string}[], host?: string, chat?: string,
   *   query?: Record<string, string>}} [options]
   */
  async tab(options = {}) {
    const tab = await this.newTab(this.url(options));
    await tab.open();
    return tab;
  }

  /** @param {string} url */
  async newTab(url) {
    if (this.context === null) throw new Error("The bench was not started");
    const tab = new Tab(await this.context.newPage(), url);
    this.tabs.push(tab);
    return tab;
  }

  /** @param {Parameters<Bench["tab"]>[0]} options */
  url({ agent = this.agent, sub = [], query = {}, host, chat } = {}) {
    const params = new URLSearchParams({
      agent,
      name: this.name,
      sub: JSON.stringify(sub),
      query: JSON.stringify(query),
    });
    if (host) params.set("host", host);
    if (chat) params.set("chat", chat);
    return `http://${this.front.host}/?${params}`;
  }

  /** What the tabs showed, for the report of a failed check. */
  async story() {
    const lines = this.complaints.map((complaint) => `complaint: ${complaint}`);
    if (this.tabs.length === 0) {
      for (const page of this.context?.pages() ?? []) lines.push(await shown(page));
    }
    const states = await Promise.all(this.tabs.map((tab) => tab.state().catch(() => null)));
    for (const [index, state] of states.entries()) {
      const { chat = null, runs = {}, closes = [], crash = null } = state ?? {};
      const { complaints } = this.tabs[index];
      lines.push(`tab ${index}: ${JSON.stringify({ chat, runs, closes, crash, complaints })}`);
    }
    for (const [index, state] of states.entries()) {
      const frames = (state?.frames ?? []).filter(({ type }) => type !== "agent-tool-event");
      const last = frames.slice(-FRAMES_TOLD).map((f) => JSON.stringify(f).slice(0, 240));
      lines.push(`frames of tab ${index}:`, ...last.map((frame) => `  ${frame}`));
    }
    return lines.join("\n").slice(0, 16_000);
  }
}

/** @param {import("playwright-core").Page} page */
async function shown(page) {
  const text = await page
    .locator("body")
    .innerText()
    .catch(() => "nothing");
  return `${page.url()} showed:\n${text.slice(0, 3000)}`;
}
