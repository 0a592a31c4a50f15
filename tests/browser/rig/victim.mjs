// A server that checks may kill and start again on the same data.
import { spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";

import { until } from "./report.mjs";

export class Victim {
  /**
   * @param {string[]} command
   * @param {{host: string, port: number}} address
   * @param {string | undefined} folder where the command is run
   */
  constructor(command, address, folder) {
    this.command = command;
    this.address = address;
    this.folder = folder;
    /** @type {import("node:child_process").ChildProcess | null} */
    this.process = null;
  }

  async start() {
    const [program, ...args] = this.command;
    this.process = spawn(program, args, { cwd: this.folder, stdio: ["ignore", "ignore", "inherit"] });
    await until(() => answers(this.address), "the server to answer", 30_000);
  }

  /** As `kill -9` does: no warning, no last words. */
  kill() {
    return this.#end("SIGKILL");
  }

  stop() {
    return this.#end("SIGTERM");
  }

  /** @param {NodeJS.Signals} signal */
  async #end(signal) {
    if (this.process === null || this.process.exitCode !== null) return;
    const gone = once(this.process, "exit");
    this.process.kill(signal);
    await gone;
  }
}

/** @param {{host: string, port: number}} address @returns {Promise<boolean>} */
function answers(address) {
  return new Promise((resolve) => {
    const probe = net.connect(address, () => {
      probe.destroy();
      resolve(true);
    });
    probe.on("error", () => resolve(false));
  });
}
