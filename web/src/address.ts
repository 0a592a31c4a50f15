// Where the agents live, and the part of the page's address that says what is open.
//
// `?user=` names the assistant; the hash is the path below it, written as the server writes it:
// `#/sub/Researcher/agent-tool%3Acall_1`.
import { useCallback, useSyncExternalStore } from "react";

export interface Step {
  agent: string;
  name: string;
}

export const ASSISTANT = "Assistant";

/** The server that served this page also serves its agents. */
export const SERVER: { host: string; protocol: "ws" | "wss" } = {
  host: window.location.host,
  protocol: window.location.protocol === "https:" ? "wss" : "ws",
};

export function userFromAddress(search: string): string {
  const user = new URLSearchParams(search).get("user")?.trim();
  return user ? user : "guest";
}

export function pathToHash(path: readonly Step[]): string {
  return path.map((step) => `/sub/${step.agent}/${encodeURIComponent(step.name)}`).join("");
}

/** Reads a path from a hash; anything that is not one opens nothing. */
export function hashToPath(hash: string): Step[] {
  const segments = hash.replace(/^#\/?/, "").split("/").filter(Boolean);
  const path: Step[] = [];
  for (let i = 0; i < segments.length; i += 3) {
    const [sub, agent, name] = segments.slice(i, i + 3);
    if (sub !== "sub" || !agent || !name) return [];
    const decoded = decodeSegment(name);
    if (decoded === null) return [];
    path.push({ agent, name: decoded });
  }
  return path;
}

function decodeSegment(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}

function subscribeToHash(changed: () => void): () => void {
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}

/** The path that is open, and how to open another. */
export function usePath(): [Step[], (path: readonly Step[]) => void] {
  const hash = useSyncExternalStore(subscribeToHash, () => window.location.hash);
  const open = useCallback((path: readonly Step[]) => {
    window.location.hash = pathToHash(path);
  }, []);
  return [hashToPath(hash), open];
}
