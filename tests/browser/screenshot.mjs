// Takes the picture in the README from the real page: two agents at work under one tool call.
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
await page.getByRole("button", { name: /^Compare/ }).click();
await page.waitForFunction(
  () =>
    [...document.querySelectorAll(".run")].filter((run) => run.querySelector(".run-parts .markdown"))
      .length === 2,
);
await page.waitForTimeout(900);
await page.screenshot({ path: values.out });
await browser.close();
