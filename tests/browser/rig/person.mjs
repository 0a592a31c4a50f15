// What a person does and sees on the page of the demo.
import { until } from "./report.mjs";

/** @typedef {import("./bench.mjs").Bench} Bench */
/** @typedef {import("playwright-core").Page} Page */

export const ANSWER_MS = 40_000;

/** Opens the page as a user of this check's own. @param {Bench} bench @param {string} [suffix] */
export async function open(bench, suffix = "") {
  if (bench.context === null) throw new Error("The bench was not started");
  const page = await bench.context.newPage();
  page.setDefaultTimeout(15_000);
  page.on("pageerror", (error) => bench.complaints.push(error.message));
  page.on("console", (line) => {
    if (line.type() === "error") bench.complaints.push(line.text());
  });
  await page.goto(`http://${bench.front.host}/?user=${encodeURIComponent(bench.name + suffix)}`);
  await live(page);
  return page;
}

/** @param {Page} page */
export function live(page) {
  return page.locator('.header [data-connection="live"]').waitFor();
}

/** @param {Page} page @param {string} text */
export async function ask(page, text) {
  await page.getByRole("textbox", { name: "Message" }).first().fill(text);
  await page.keyboard.press("Enter");
}

/** Waits until the answer in the conversation has ended. @param {Page} page */
export async function ended(page) {
  const conversation = page.locator(".conversation");
  await conversation.locator('[data-role="assistant"]').last().waitFor({ timeout: ANSWER_MS });
  await conversation.locator('[role="log"][aria-busy="false"]').waitFor({ timeout: ANSWER_MS });
}

/** @param {Page} page */
export function runs(page) {
  return page.locator(".conversation .run");
}

/** Waits until the first run says something. @param {Page} page */
export function working(page) {
  return page.locator('.conversation .run[data-status="running"] .run-parts').first().waitFor();
}

/** What a run panel says, folded away or not. @param {Page} page */
export function said(page) {
  return page.locator(".conversation .run .run-parts").first().textContent();
}

/** Clears the conversation, which is asked about. @param {Page} page */
export async function clear(page) {
  await page.getByRole("button", { name: "Clear the conversation" }).click();
  await page.getByRole("button", { name: "Clear everything" }).click();
}

/** The answer below the tool calls. @param {Page} page */
export function answered(page) {
  return page.locator('.conversation [data-role="assistant"] > .markdown').last().innerText();
}

/** How far the transcript is from its end. @param {Page} page */
export function below(page) {
  return page
    .locator(".conversation .scroll")
    .evaluate((area) => area.scrollHeight - area.scrollTop - area.clientHeight);
}

/** Waits until the focus is in the message box. @param {Page} page @param {string} after */
export function writes(page, after) {
  const inField = () => page.evaluate(() => document.activeElement?.tagName === "TEXTAREA");
  return until(inField, `the focus in the message box ${after}`);
}

export const RESEARCH = "How does the with statement manage context managers?";
