// What to mount, from the query string of the page.
export interface Config {
  agent: string;
  name: string;
  /** `host:port` of the agents; the page's own when it is not given. */
  host: string;
  sub: { agent: string; name: string }[];
  query: Record<string, string>;
  chat: boolean;
}

export function readConfig(search: string): Config {
  const params = new URLSearchParams(search);
  return {
    agent: params.get("agent") ?? "ChatAgent",
    name: params.get("name") ?? "default",
    host: params.get("host") ?? window.location.host,
    sub: JSON.parse(params.get("sub") ?? "[]"),
    query: JSON.parse(params.get("query") ?? "{}"),
    chat: params.get("chat") !== "no",
  };
}
