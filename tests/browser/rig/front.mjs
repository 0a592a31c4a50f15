// Stands between the browser and the server: serves the test page, passes the agents' traffic on,
// and cuts it when a check asks for that.
import { readFile } from "node:fs/promises";
import http from "node:http";
import net from "node:net";
import path from "node:path";

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css" };

export class Front {
  /** @param {{host: string, port: number}} server @param {string | null} pages */
  constructor(server, pages) {
    this.server = server;
    this.pages = pages;
    this.blocked = false;
    /** @type {Set<import("node:stream").Duplex>} */
    this.sockets = new Set();
    this.http = http.createServer((request, response) => this.#onRequest(request, response));
    this.http.on("upgrade", (request, socket, head) => this.#onUpgrade(request, socket, head));
  }

  /** @returns {Promise<void>} */
  listen() {
    return new Promise((resolve) => this.http.listen(0, "127.0.0.1", () => resolve()));
  }

  get host() {
    const address = this.http.address();
    if (address === null || typeof address === "string") throw new Error("The front is not open");
    return `127.0.0.1:${address.port}`;
  }

  /** Cuts every WebSocket as a dead network would: no close frame. */
  cut() {
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
  }

  /** Cuts everything and lets nobody through until `unblock`. */
  block() {
    this.blocked = true;
    this.cut();
  }

  unblock() {
    this.blocked = false;
  }

  /** @returns {Promise<void>} */
  close() {
    this.cut();
    this.http.closeAllConnections();
    return new Promise((resolve) => this.http.close(() => resolve()));
  }

  /** @param {http.IncomingMessage} request @param {http.ServerResponse} response */
  #onRequest(request, response) {
    const target = request.url ?? "/";
    if (this.pages === null || target.startsWith("/agents/")) return this.#pass(request, response);
    void this.#page(target, response);
  }

  /** @param {http.IncomingMessage} request @param {http.ServerResponse} response */
  #pass(request, response) {
    if (this.blocked) return void response.destroy();
    const { url, method, headers } = request;
    const onward = http.request({ ...this.server, path: url, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  }

  /** @param {string} target @param {http.ServerResponse} response */
  async #page(target, response) {
    const { pathname } = new URL(target, "http://page");
    const name = pathname === "/" ? "index.html" : path.normalize(pathname).slice(1);
    try {
      const content = await readFile(path.join(this.pages ?? "", name));
      const extension = /** @type {keyof typeof TYPES} */ (path.extname(name));
      response.writeHead(200, { "content-type": TYPES[extension] ?? "application/octet-stream" });
      response.end(content);
    } catch {
      response.writeHead(404).end();
    }
  }

  /**
   * @param {http.IncomingMessage} request
   * @param {import("node:stream").Duplex} socket
   * @param {Buffer} head
   */
  #onUpgrade(request, socket, head) {
    if (this.blocked) return void socket.destroy();
    const onward = net.connect(this.server, () => {
      const lines = [`${request.method} ${request.url} HTTP/1.1`];
      for (let i = 0; i < request.rawHeaders.length; i += 2) {
        lines.push(`${request.rawHeaders[i]}: ${request.rawHeaders[i + 1]}`);
      }
      onward.write(`${lines.join("\r\n")}\r\n\r\n`);
      onward.write(head);
      socket.pipe(onward).pipe(socket);
    });
    for (const [end, other] of [
      [socket, onward],
      [onward, socket],
    ]) {
      this.sockets.add(end);
      end.on("error", () => other.destroy());
      end.on("close", () => {
        this.sockets.delete(end);
        other.destroy();
      });
    }
  }
}
