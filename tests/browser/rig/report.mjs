// Runs checks one after the other and reports each as a line of JSON on standard output.

/**
 * @typedef {(bench: any) => Promise<void>} Check
 */

const CHECK_TIMEOUT_MS = 45_000;

/**
 * @param {Record<string, Check>} checks
 * @param {() => Promise<{bench: any, close: () => Promise<void>}>} prepare gives each check its own bench
 * @param {string | undefined} only a part of a name; other checks are left out
 */
export async function runChecks(checks, prepare, only) {
  for (const [name, check] of Object.entries(checks)) {
    if (only && !name.includes(only)) continue;
    const started = performance.now();
    const failure = await failureOf(check, prepare);
    const seconds = Math.round((performance.now() - started) / 100) / 10;
    report({ check: name, ok: failure === null, detail: failure ?? "", seconds });
  }
}

/** @param {unknown} line */
export function report(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/**
 * @param {Check} check
 * @param {() => Promise<{bench: any, close: () => Promise<void>}>} prepare
 * @returns {Promise<string | null>}
 */
async function failureOf(check, prepare) {
  const { bench, close } = await prepare();
  try {
    await within(CHECK_TIMEOUT_MS, check(bench), "the check did not end");
    return null;
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return `${text}\n${(await bench.story?.()) ?? ""}`.trim();
  } finally {
    await close();
  }
}

/**
 * @template T
 * @param {number} milliseconds
 * @param {Promise<T>} promise
 * @param {string} what
 * @returns {Promise<T>}
 */
export async function within(milliseconds, promise, what) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} within ${milliseconds} ms`)), milliseconds);
  });
  try {
    return /** @type {T} */ (await Promise.race([promise, late]));
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Waits until `condition` gives something other than a falsy value, and gives that.
 *
 * @template T
 * @param {() => T | Promise<T>} condition
 * @param {string} what
 * @param {number} milliseconds
 * @returns {Promise<T>}
 */
export async function until(condition, what, milliseconds = 10_000) {
  const end = performance.now() + milliseconds;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (performance.now() > end) throw new Error(`Waited ${milliseconds} ms for: ${what}`);
    await pause(20);
  }
}

/** @param {number} milliseconds */
export function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
