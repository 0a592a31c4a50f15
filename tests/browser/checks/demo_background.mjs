// The demo's tray of runs in the background, used as a person uses it; the server is killed too.
import assert from "node:assert/strict";

import { answered, ask, ended, live, open } from "../rig/person.mjs";
import { pause, until } from "../rig/report.mjs";

export const kind = "demo";

/** @typedef {import("../rig/bench.mjs").Bench} Bench */
/** @typedef {import("playwright-core").Page} Page */

const BUILD = "Run the tests in the background";
const RUN_MS = 40_000;

/** A row of the tray. @param {Page} page @param {string} agent @param {string} [status] */
function row(page, agent, status) {
  const title = agent === "BuildRunner" ? "The tests" : "Research on";
  const rows = status ? `.tray-run[data-status="${status}"]` : ".tray-run";
  return page.locator(rows).filter({ hasText: title });
}

/** Waits until the bar of a build has moved. @param {Page} page */
async function building(page) {
  await row(page, "BuildRunner", "running").locator('[data-milestone="collected"]').waitFor();
  const bar = row(page, "BuildRunner", "running").getByRole("progressbar");
  await until(async () => Number(await bar.getAttribute("aria-valuenow")) > 0, "the bar to move");
}

/** @param {Page} page */
function lastAnswer(page) {
  return page.locator('.conversation [data-role="assistant"]').last();
}

/** @type {Record<string, (bench: Bench) => Promise<void>>} */
export const checks = {
  async "that nothing is in the background yet"(bench) {
    const page = await open(bench);
    await page.setViewportSize({ width: 360, height: 640 });
    const toggle = page.getByRole("button", { name: /^In the background nothing/ });
    assert.equal(await toggle.getAttribute("aria-expanded"), "false");
    await toggle.focus();
    await page.keyboard.press("Enter");
    await page.locator(".tray").getByText("Nothing yet").waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `the page is ${wide} wide`);
    assert.deepEqual(bench.complaints, []);
  },

  async "that a research goes on beside the conversation and reports by a message"(bench) {
    const page = await open(bench);
    await page.getByRole("button", { name: /^Background/ }).click();
    await row(page, "Researcher", "running").getByRole("progressbar").waitFor();
    await ended(page);
    assert.match(await answered(page), /^At work in the background/);
    await ask(page, "thanks");
    await page.getByText("You are welcome.").waitFor();
    assert.equal(await row(page, "Researcher", "running").count(), 1, "nobody let go of it");
    await page.locator('.notice[data-notice="milestone"]').waitFor();
    await page.locator('.notice[data-notice="completed"]').waitFor({ timeout: RUN_MS });
    await lastAnswer(page).getByText("is done.").waitFor();
    await ended(page);
    await lastAnswer(page).getByText("Sources").waitFor();
    assert.equal(await row(page, "Researcher", "completed").count(), 1);
    assert.deepEqual(bench.complaints, []);
  },

  async "how far a build is, after a reload and a cut too, and how it ended"(bench) {
    const page = await open(bench);
    await ask(page, BUILD);
    await building(page);
    await page.reload();
    await building(page);
    bench.front.block();
    await page.locator('.header [data-connection="reconnecting"]').waitFor();
    bench.front.unblock();
    await live(page);
    await row(page, "BuildRunner", "completed").waitFor({ timeout: RUN_MS });
    assert.equal(await page.locator(".tray-run").count(), 1);
    await lastAnswer(page).getByText("failed with exit code 1").first().waitFor();
    await ended(page);
    await lastAnswer(page).getByText("1 failed, 23 passed").first().waitFor();
    assert.equal(await page.locator('.notice[data-notice="completed"]').count(), 1);
    assert.deepEqual(
      await row(page, "BuildRunner").locator("[data-milestone]").allInnerTexts(),
      ["collected", "first-failure"],
    );
  },

  async "that a build can be cancelled with the keyboard"(bench) {
    const page = await open(bench);
    await ask(page, BUILD);
    await building(page);
    await ended(page);
    await page.getByRole("button", { name: "Cancel: The tests" }).focus();
    await page.keyboard.press("Enter");
    await row(page, "BuildRunner", "aborted").waitFor();
    const opener = page.getByRole("button", { name: "Open as chat: The tests" }).first();
    assert.ok(await opener.evaluate((one) => one === document.activeElement), "focus was lost");
    await pause(500);
    assert.equal(await page.locator('.notice[data-notice="aborted"]').count(), 0);
  },

  async "that a build opens as a chat"(bench) {
    const page = await open(bench);
    await ask(page, BUILD);
    await building(page);
    await page.locator(".tray").getByRole("button", { name: "Open as chat: The tests" }).click();
    const chat = page.getByTestId("drill-in");
    await chat.locator('[data-connection="live"]').waitFor();
    await chat.getByRole("progressbar").waitFor();
    await chat.getByText("failed with exit code 1").first().waitFor({ timeout: RUN_MS });
    await page.keyboard.press("Escape");
    await chat.waitFor({ state: "detached" });
  },

  async "that all of it goes on after the server was killed, and each result comes once"(bench) {
    const page = await open(bench);
    await ask(page, BUILD);
    await building(page);
    await ended(page);
    await page.getByRole("textbox", { name: "Message" }).first().fill("");
    await ask(page, "Research how generators handle exceptions, in the background");
    await row(page, "Researcher", "running").locator('[data-milestone="sources-found"]').waitFor();
    await bench.victim?.kill();
    await page.locator('.header [data-connection="reconnecting"]').waitFor();
    assert.equal(await page.locator(".tray-run").count(), 2, "the tray forgot what it showed");
    await bench.victim?.start();
    await live(page);
    for (const agent of ["Researcher", "BuildRunner"]) {
      await row(page, agent, "completed").waitFor({ timeout: RUN_MS });
    }
    await page.locator('.notice[data-notice="completed"]').nth(1).waitFor({ timeout: RUN_MS });
    await row(page, "BuildRunner").locator('[data-milestone="started-again"]').waitFor();
    await page.reload();
    await page.locator('.notice[data-notice="completed"]').nth(1).waitFor();
    await pause(2000);
    assert.equal(await page.locator('.notice[data-notice="completed"]').count(), 2);
    assert.equal(await page.locator(".tray-run:visible").count(), 0, "what has ended opens by itself");
    await page.getByRole("button", { name: /^In the background 2 ended/ }).click();
    assert.deepEqual(
      await row(page, "Researcher", "completed").locator("[data-milestone]").allInnerTexts(),
      ["sources-found"],
    );
    assert.deepEqual(
      await row(page, "BuildRunner", "completed").locator("[data-milestone]").allInnerTexts(),
      ["collected", "started-again", "collected", "first-failure"],
    );
  },
};
