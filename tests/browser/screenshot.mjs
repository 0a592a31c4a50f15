// Takes the picture in the README from the real page: two agents at work under one tool call,
// while a research goes on in the background.
//
//   node screenshot.mjs --server HOST:PORT --out FILE
import { parseArgs } from "node:util";

import { startChromium } from "./rig/chromium.mjs";

const { values } = parseArgs({ options: { server: { type: "string" }, out: { type: "string" } } });
if (!values.server || !values.out) throw new Error("usage: --server HOST:PORT --out FILE");

const browser = await startChromium();
const page = await browser.newPage({
  viewport: { width: 1200, height: 820 },
  deviceScaleFactor: 1.5,
  colorScheme: "light",
});
await page.goto(`http://${values.server}/?user=guest`);
await page.locator('.header [data-connection="live"]').waitFor();
await page.getByRole("button", { name: /^Background/ }).click();
await page.locator(".tray-run").waitFor();
await page.locator('[role="log"][aria-busy="false"]').waitFor();
await page.getByRole("textbox", { name: "Message" }).fill("Compare lists and tuples");
await page.keyboard.press("Enter");
await page.waitForFunction(
  () =>
    [...document.querySelectorAll(".runs[data-count='2'] .run")].filter((run) =>
      run.querySelector(".run-parts .markdown"),
    ).length === 2,
);
await page.waitForTimeout(900);
await page.screenshot({ path: values.out });
await browser.close();
