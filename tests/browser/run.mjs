// Runs one group of checks against a running server:
//
//   node run.mjs GROUP --server HOST:PORT [--agent ChatAgent] [--only PART-OF-A-NAME]
//
// A group that kills the server starts it itself: --start '["COMMAND", "ARGUMENT", …]' --root FOLDER
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { Bench } from "./rig/bench.mjs";
import { startChromium } from "./rig/chromium.mjs";
import { runChecks } from "./rig/report.mjs";
import { Victim } from "./rig/victim.mjs";

const HERE = path.dirname(fileURLToPath(import.meta.url));

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    server: { type: "string" },
    agent: { type: "string", default: "ChatAgent" },
    only: { type: "string" },
    start: { type: "string" },
    root: { type: "string" },
  },
});
const [group] = positionals;
if (!group || !values.server) throw new Error("usage: node run.mjs GROUP --server HOST:PORT");

const [host, port] = values.server.split(":");
const server = { host, port: Number(port) };
const { checks, kind } = await import(`./checks/${group}.mjs`);
const { agent, only } = values;
const victim = values.start ? new Victim(JSON.parse(values.start), server, values.root) : null;
await victim?.start();

if (kind === "node") {
  const bench = { server: values.server, agent };
  await runChecks(checks, async () => ({ bench, close: async () => {} }), only);
} else {
  const browser = await startChromium();
  const pages = kind === "demo" ? null : path.join(HERE, "dist");
  const prepare = async () => {
    const bench = new Bench(browser, server, { agent, pages, victim });
    await bench.start();
    return { bench, close: () => bench.close() };
  };
  await runChecks(checks, prepare, only);
  await browser.close();
}
await victim?.stop();
process.exit(0);
