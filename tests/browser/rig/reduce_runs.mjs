// What npm's `useAgentToolEvents` makes of frames: reads a JSON list of texts from standard input,
// writes the state as JSON. The clock stands at NOW.
import { readFileSync } from "node:fs";

import { useAgentToolEvents } from "agents/react";
import * as React from "react";

const NOW = 1_000;
Date.now = () => NOW;

/** @type {any} */
let state;
/** @type {(event: {data: unknown}) => void} */
let listener = () => {};

// The hook is called once, with just enough of React for its state and its effect.
const dispatcher = {
  /** @param {() => unknown} initial */
  useState: (initial) => {
    state = initial();
    return [state, (/** @type {any} */ next) => (state = typeof next === "function" ? next(state) : next)];
  },
  /** @param {unknown} current */
  useRef: (current) => ({ current }),
  /** @param {() => void} effect */
  useEffect: (effect) => effect(),
  /** @param {unknown} callback */
  useCallback: (callback) => callback,
};
/** @type {any} */ (React).__CLIENT_INTERNALS_DO_NOT_USE_OR_WARN_USERS_THEY_CANNOT_UPGRADE.H = dispatcher;

/** @type {any} */
const agent = {
  /** @param {string} _type @param {typeof listener} given */
  addEventListener: (_type, given) => (listener = given),
  removeEventListener: () => {},
};
useAgentToolEvents({ agent });

for (const data of JSON.parse(readFileSync(0, "utf8"))) listener({ data });
process.stdout.write(JSON.stringify(state));
