// `AgentClient` in Node, with every frame kept; and plain sockets and requests where it cannot go.
import { once } from "node:events";
import http from "node:http";

import { AgentClient } from "agents/client";
import { WebSocket } from "ws";

import { until, within } from "./report.mjs";

/**
 * @typedef {Record<string, any>} Frame
 * @typedef {InstanceType<typeof AgentClient> & {frames: Frame[], closes: {code: number, reason: string}[]}} Client
 */

/** @type {Client[]} */
const open = [];

/**
 * @param {string} host
 * @param {Record<string, any>} options
 * @returns {Client}
 */
export function client(host, options) {
  const made = new AgentClient({
    host,
    WebSocket,
    minReconnectionDelay: 50,
    maxReconnectionDelay: 100,
    ...options,
    agent: options.agent,
  });
  /** @type {Frame[]} */
  const frames = [];
  /** @type {{code: number, reason: string}[]} */
  const closes = [];
  made.addEventListener("message", ({ data }) => void frames.push(JSON.parse(String(data))));
  made.addEventListener("close", ({ code, reason }) => void closes.push({ code, reason }));
  const kept = Object.assign(made, { frames, closes });
  open.push(/** @type {any} */ (kept));
  return /** @type {any} */ (kept);
}

/** @param {string} host @param {Record<string, any>} options */
export async function connected(host, options) {
  const made = client(host, options);
  await within(5000, made.ready, `${options.agent} did not introduce itself`);
  return made;
}

export function closeAll() {
  for (const made of open.splice(0)) made.close();
}

/**
 * The error that a call is rejected with.
 *
 * @param {Promise<unknown>} promise
 * @returns {Promise<string>}
 */
export async function rejection(promise) {
  try {
    const value = await within(5000, promise, "no answer came");
    throw new Error(`Expected an error, got ${JSON.stringify(value)}`);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * @param {{frames: Frame[]}} client
 * @param {string} type
 * @returns {Promise<Frame>}
 */
export async function frame(client, type) {
  const found = await until(() => client.frames.find((f) => f.type === type), `a ${type} frame`);
  return /** @type {Frame} */ (found);
}

/**
 * A plain WebSocket that keeps what it gets.
 *
 * @param {string} url
 */
export async function rawSocket(url) {
  const socket = new WebSocket(url);
  /** @type {Frame[]} */
  const frames = [];
  /** @type {{code: number, reason: string}[]} */
  const closes = [];
  socket.on("message", (data) => void frames.push(JSON.parse(String(data))));
  socket.on("close", (code, reason) => void closes.push({ code, reason: String(reason) }));
  await within(5000, once(socket, "open"), "the socket did not open");
  return { socket, frames, closes };
}

/**
 * A request whose path goes out exactly as it is written.
 *
 * @param {string} host
 * @param {string} path
 * @param {{method?: string, headers?: Record<string, string>}} [options]
 * @returns {Promise<{status: number, headers: http.IncomingHttpHeaders, body: string}>}
 */
export function request(host, path, { method = "GET", headers = {} } = {}) {
  const [hostname, port] = host.split(":");
  return new Promise((resolve, reject) => {
    const sent = http.request({ hostname, port, path, method, headers }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (piece) => (body += piece));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
    });
    sent.on("error", reject);
    sent.end();
  });
}
