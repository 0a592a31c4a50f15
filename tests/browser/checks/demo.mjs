// The demo's own page in Chromium, used as a person uses it.
import assert from "node:assert/strict";

import {
  ANSWER_MS,
  RESEARCH,
  answered,
  ask,
  below,
  clear,
  ended,
  live,
  open,
  runs,
  said,
  working,
  writes,
} from "../rig/person.mjs";
import { pause, until } from "../rig/report.mjs";

export const kind = "demo";

/** @typedef {import("../rig/bench.mjs").Bench} Bench */
/** @type {Record<string, (bench: Bench) => Promise<void>>} */
export const checks = {
  async "the page names the model that answers"(bench) {
    const page = await open(bench);
    const info = await (await fetch(`http://${bench.front.host}/demo/info`)).json();
    const line = page.locator(".model-line");
    await line.getByText(info.model).waitFor();
    assert.match(await line.innerText(), /no language model/);
    assert.deepEqual(bench.complaints, []);
  },

  async "an example question is answered by an agent that is seen at work"(bench) {
    const page = await open(bench);
    await page.locator(".examples button").first().click();
    await working(page);
    await page.locator('.conversation .run[data-status="completed"]').waitFor({ timeout: ANSWER_MS });
    await ended(page);
    assert.ok((await answered(page)).length > 40, "the answer is too short to be one");
    assert.ok(await page.locator(".conversation .run .tool").count(), "the agent used no tool");
    assert.deepEqual(bench.complaints, []);
  },

  async "a reload in the middle of a run loses and doubles nothing"(bench) {
    const page = await open(bench);
    await ask(page, RESEARCH);
    await working(page);
    await page.reload();
    await page.locator('.conversation .run[data-status="completed"]').waitFor({ timeout: ANSWER_MS });
    await ended(page);
    const [panel, answer] = [await said(page), await answered(page)];
    assert.equal(await runs(page).count(), 1);
    assert.equal(await page.locator('[data-role="user"]').count(), 1);
    assert.equal(await page.locator('[data-role="assistant"]').count(), 1);
    await page.reload();
    await page.locator('.conversation .run[data-status="completed"]').waitFor();
    assert.equal(await said(page), panel);
    assert.equal(await answered(page), answer);
  },

  async "a comparison shows two agents side by side"(bench) {
    const page = await open(bench);
    await page.getByRole("button", { name: /^Compare/ }).click();
    await until(async () => (await runs(page).count()) === 2, "two panels", ANSWER_MS);
    await ended(page);
    const states = await runs(page).evaluateAll((all) => all.map((one) => one.dataset.status));
    assert.deepEqual(states, ["completed", "completed"]);
  },

  async "a plan is made by the planner"(bench) {
    const page = await open(bench);
    await page.getByRole("button", { name: /^Plan/ }).click();
    const panel = page.locator('.conversation .run[data-agent="Planner"]');
    await panel.waitFor();
    await ended(page);
    assert.equal(await panel.getAttribute("data-status"), "completed");
    assert.ok(await panel.locator(".tool").count(), "the planner looked at nothing");
  },

  async "a run opens as a chat that the address names"(bench) {
    const page = await open(bench);
    await ask(page, RESEARCH);
    await working(page);
    await page.getByRole("button", { name: /Open as chat/ }).click();
    const chat = page.getByTestId("drill-in");
    await chat.locator('[data-connection="live"]').waitFor();
    await chat.locator('[data-role="assistant"]').waitFor();
    assert.equal(await chat.locator('[data-role="user"]').count(), 1);
    assert.equal((await chat.locator('[data-role="user"]').innerText()).includes("{"), false);
    assert.match(new URL(page.url()).hash, /^#\/sub\/Researcher\/./);
    await ended(page);
    await chat.locator('[role="log"][aria-busy="false"]').waitFor({ timeout: ANSWER_MS });
    const text = await chat.locator(".markdown").last().innerText();
    assert.ok(text.length > 40, "the child said too little");
    await page.reload();
    await chat.getByText(text.slice(0, 30)).first().waitFor();
    await chat.getByRole("button", { name: "Back" }).click();
    await chat.waitFor({ state: "detached" });
    assert.equal(new URL(page.url()).hash, "");
  },

  async "a run that never was says so and lets one go back"(bench) {
    const page = await open(bench);
    await page.evaluate(() => (window.location.hash = "#/sub/Researcher/made-up"));
    const chat = page.getByTestId("drill-in");
    await chat.getByRole("alert").getByText("refused").waitFor();
    await page.keyboard.press("Escape");
    await chat.waitFor({ state: "detached" });
  },

  async "the keyboard is enough"(bench) {
    const page = await open(bench);
    const field = page.getByRole("textbox", { name: "Message" });
    await field.focus();
    await page.keyboard.type("What is");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("a generator?");
    assert.equal(await field.inputValue(), "What is\na generator?");
    await page.keyboard.press("Enter");
    await ended(page);
    const opener = page.getByRole("button", { name: /Open as chat/ }).first();
    await opener.focus();
    await page.keyboard.press("Enter");
    await page.getByTestId("drill-in").getByRole("heading").first().waitFor();
    await page.keyboard.press("Escape");
    await page.getByTestId("drill-in").waitFor({ state: "detached" });
    assert.ok(await opener.evaluate((button) => button === document.activeElement), "focus was lost");
    const status = page.getByTestId("live-status").first();
    assert.match(await status.innerText(), /^Answer: ./);
  },

  async "the transcript stays at its end until the reader moves up"(bench) {
    const page = await open(bench);
    await page.setViewportSize({ width: 900, height: 500 });
    await ask(page, "Compare lists and tuples");
    await page.getByRole("button", { name: "Cancel" }).waitFor();
    await ended(page);
    assert.ok((await below(page)) < 2, "the page did not follow the answer");
    for (let round = 0; round < 3; round += 1) {
      await page.reload();
      await page.locator('.conversation .run[data-status="completed"]').nth(1).waitFor();
      await pause(500);
      assert.ok((await below(page)) < 2, "the reload did not end at the end");
    }
    await ask(page, RESEARCH);
    await page.locator('.conversation .run[data-status="running"]').waitFor();
    await page.locator('[data-role="user"]').last().hover();
    await page.mouse.wheel(0, -60);
    await page.getByRole("button", { name: "Jump to the latest" }).waitFor();
    await ended(page);
    assert.ok((await below(page)) > 2, "the page took the reader back to the end");
    await page.getByRole("button", { name: "Jump to the latest" }).click();
    assert.ok((await below(page)) < 2, "the button did not lead to the end");
  },

  async "the focus returns to the message box"(bench) {
    const page = await open(bench);
    await writes(page, "at first");
    await page.locator(".examples button").first().click();
    await writes(page, "after an example");
    await page.getByText("Wait or cancel before asking again").waitFor();
    await working(page);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Send" }).waitFor();
    await writes(page, "after a cancel");
    await until(
      async () => (await page.getByTestId("live-status").innerText()) === "Cancelled",
      "the cancel said aloud",
    );
    assert.equal(await page.locator(".run-error").count(), 0, "a cancel is shown as an error");
    await clear(page);
    await page.locator(".examples").waitFor();
    await writes(page, "after a clear");
  },

  async "the work of a run folds away once the answer holds what came of it"(bench) {
    const page = await open(bench);
    await ask(page, RESEARCH);
    await working(page);
    const work = page.locator(".conversation .run .run-work");
    assert.equal(await work.getAttribute("open"), "");
    await page.locator('.conversation .run[data-status="completed"]').waitFor({ timeout: ANSWER_MS });
    assert.equal(await work.getAttribute("open"), null, "the text of the run stands twice");
    await work.locator("summary").first().focus();
    await page.keyboard.press("Enter");
    await ended(page);
    await page.locator(".conversation .run .run-parts").waitFor();
  },

  async "the button that leads to the end leaves the focus in the message box"(bench) {
    const page = await open(bench);
    await page.setViewportSize({ width: 900, height: 500 });
    await ask(page, "Compare lists and tuples");
    await ended(page);
    const button = page.getByRole("button", { name: "Jump to the latest" });
    const away = async () => {
      await page.locator('[data-role="user"]').last().hover();
      await page.mouse.wheel(0, -300);
      await button.waitFor();
    };
    await away();
    await page.getByRole("textbox", { name: "Message" }).focus();
    await button.click();
    await writes(page, "after a click on the button");
    await away();
    await button.focus();
    await page.keyboard.press("Enter");
    await writes(page, "after Enter on the button");
  },

  async "clear asks first and Escape keeps everything"(bench) {
    const page = await open(bench);
    await ask(page, RESEARCH);
    await ended(page);
    const opener = page.getByRole("button", { name: "Clear the conversation" });
    await opener.click();
    const question = page.getByRole("dialog", { name: "Clear the conversation?" });
    await question.getByText("and its run are removed for good").waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "hidden" });
    assert.equal(await runs(page).count(), 1);
    assert.ok(await opener.evaluate((one) => one === document.activeElement), "focus was lost");
  },

  async "cancel ends the answer and its runs"(bench) {
    const page = await open(bench);
    await ask(page, RESEARCH);
    await working(page);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.locator('.conversation .run[data-status="aborted"]').waitFor();
    await page.getByRole("button", { name: "Send" }).waitFor();
  },

  async "an answer can be cancelled from another tab"(bench) {
    const page = await open(bench);
    const other = await open(bench);
    await ask(page, RESEARCH);
    await working(other);
    await other.getByRole("button", { name: "Cancel" }).click();
    for (const one of [page, other]) {
      await one.locator('.conversation .run[data-status="aborted"]').waitFor();
      await one.getByRole("button", { name: "Send" }).waitFor();
    }
  },

  async "clear empties both tabs, panels included"(bench) {
    const page = await open(bench);
    const other = await open(bench);
    await ask(page, RESEARCH);
    await ended(page);
    await other.locator('.conversation .run[data-status="completed"]').waitFor();
    await clear(page);
    for (const one of [page, other]) {
      await one.locator(".examples").waitFor();
      assert.equal(await runs(one).count(), 0);
    }
    await pause(500);
    await page.reload();
    await live(page);
    await page.locator(".examples").waitFor();
    await pause(2000);
    assert.equal(await runs(page).count(), 0, "a run came back after the reload");
    assert.deepEqual(bench.complaints, []);
  },

  async "clear in the middle of a run leaves nothing behind"(bench) {
    const page = await open(bench);
    const other = await open(bench);
    await ask(page, RESEARCH);
    await working(other);
    await clear(page);
    for (const one of [page, other]) await one.locator(".examples").waitFor();
    await pause(2500);
    for (const one of [page, other]) {
      assert.equal(await runs(one).count(), 0, "a run came back");
      assert.equal(await one.locator("[data-role]").count(), 0, "a message came back");
    }
    await ask(page, RESEARCH);
    await page.locator('.conversation .run[data-status="completed"]').waitFor({ timeout: ANSWER_MS });
  },

  async "each user has an assistant of their own"(bench) {
    const page = await open(bench);
    await ask(page, RESEARCH);
    await ended(page);
    const stranger = await open(bench, " stranger");
    await stranger.locator(".examples").waitFor();
    assert.equal(await stranger.locator("[data-role]").count(), 0);
  },

  async "the page says that it lost the connection and catches up"(bench) {
    const page = await open(bench);
    await ask(page, RESEARCH);
    await working(page);
    bench.front.block();
    await page.locator('.header [data-connection="reconnecting"]').waitFor();
    await pause(1000);
    bench.front.unblock();
    await live(page);
    await ended(page);
    assert.equal(await runs(page).count(), 1);
    assert.ok((await answered(page)).length > 40);
  },
};
