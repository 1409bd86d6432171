// The HTTP client of the bench's driver: HTTP/1.1 over persistent sockets, so that it costs little in comparison with
// the measured program. `fetch` would open a new connection for each request beyond 64 in flight. The client reads
// ASCII only.

import type { Socket } from "bun";

export interface Reply {
  status: number;
  body: string;
  /** The time from the request to the read that contained `mark`; null if none did. */
  marked_ms: number | null;
  /** The times between the reads after the one that contained `mark`. */
  gaps_ms: number[];
  total_ms: number;
}

export interface Request {
  method: "GET" | "POST";
  path: string;
  headers: Record<string, string>;
  body: string;
  /** The text whose arrival is timed. */
  mark: string;
}

const endOfChunks = "\r\n0\r\n\r\n";
const answer_ms_max = 60_000;

export class Connection {
  readonly #socket: Socket<Connection>;
  readonly #host: string;
  #parts: string[] = [];
  #sent = 0;
  #mark = "";
  #marked_ms: number | null = null;
  #gaps_ms: number[] = [];
  #read = 0;
  /** The lengths in characters of the head, and of the body by its Content-Length; null if the body is chunked. */
  #head: { characters: number; bodyCharacters: number | null } | null = null;
  #characters = 0;
  #tail = "";
  #unwritten: Uint8Array | null = null;
  #waiting: PromiseWithResolvers<Reply> | null = null;
  isOpen = true;

  constructor(socket: Socket<Connection>, host: string) {
    this.#socket = socket;
    this.#host = host;
  }

  ask({ method, path, headers, body, mark }: Request): Promise<Reply> {
    if (this.#waiting) throw new Error("a connection has one request at a time");
    this.#parts = [];
    this.#head = null;
    this.#characters = 0;
    this.#tail = "";
    this.#mark = mark;
    this.#marked_ms = null;
    this.#gaps_ms = [];
    this.#waiting = Promise.withResolvers();
    const lines = Object.entries({ host: this.#host, ...headers, "content-length": `${body.length}` });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    this.#unwritten = Buffer.from(`${method} ${path} HTTP/1.1\r\n${head}\r\n${body}`, "latin1");
    this.#sent = performance.now();
    this.#socket.timeout(answer_ms_max / 1000);
    this.write();
    return this.#waiting.promise;
  }

  write(): void {
    if (!this.#unwritten) return;
    const written = this.#socket.write(this.#unwritten);
    this.#unwritten = written < this.#unwritten.length ? this.#unwritten.subarray(Math.max(0, written)) : null;
  }

  read(data: Buffer): void {
    const text = data.toString("latin1");
    const now = performance.now();
    if (this.#marked_ms !== null) this.#gaps_ms.push(now - this.#read);
    this.#read = now;
    this.#parts.push(text);
    this.#characters += text.length;
    this.#tail = (this.#tail + text).slice(-Math.max(endOfChunks.length, this.#mark.length + text.length));
    if (this.#marked_ms === null && this.#mark !== "" && this.#tail.includes(this.#mark)) {
      this.#marked_ms = now - this.#sent;
    }
    if (!this.#head) this.#readHead();
    if (!this.#head) return;
    const { characters, bodyCharacters } = this.#head;
    const isWhole =
      bodyCharacters === null ? this.#tail.endsWith(endOfChunks) : this.#characters >= characters + bodyCharacters;
    if (isWhole) this.#answer();
  }

  end(cause: string): void {
    this.isOpen = false;
    this.#waiting?.reject(
      new Error(`${cause}; it had ${this.#characters} characters: ${this.#parts.join("").slice(0, 300)}`),
    );
    this.#waiting = null;
  }

  close(): void {
    this.isOpen = false;
    this.#socket.end();
  }

  #readHead(): void {
    const text = this.#parts.join("");
    const end = text.indexOf("\r\n\r\n");
    if (end < 0) return;
    const head = text.slice(0, end).toLowerCase();
    const length = /\r\ncontent-length: *(\d+)/.exec(head);
    const isChunked = /\r\ntransfer-encoding: *chunked/.test(head);
    if (!length && !isChunked) {
      this.end(`a head without a length: ${head}`);
      return;
    }
    this.#head = { characters: end + 4, bodyCharacters: isChunked ? null : Number(length![1]) };
    if (/\r\nconnection: *close/.test(head)) this.isOpen = false;
  }

  #answer(): void {
    const waiting = this.#waiting;
    if (!waiting || !this.#head) {
      this.end("an answer that nobody asked for");
      return;
    }
    const total_ms = performance.now() - this.#sent;
    const text = this.#parts.join("");
    const body = text.slice(this.#head.characters);
    this.#waiting = null;
    this.#parts = [];
    try {
      waiting.resolve({
        status: Number(text.slice(9, 12)),
        body: this.#head.bodyCharacters === null ? unchunked(body) : body,
        marked_ms: this.#marked_ms,
        gaps_ms: this.#gaps_ms,
        total_ms,
      });
    } catch (cause) {
      waiting.reject(cause);
    }
  }
}

/** Joins the chunks of a chunked body. Throws if their lengths are wrong. */
export function unchunked(text: string): string {
  const pieces: string[] = [];
  let at = 0;
  for (;;) {
    const line = text.indexOf("\r\n", at);
    const length = line < 0 ? Number.NaN : Number.parseInt(text.slice(at, line), 16);
    if (Number.isNaN(length)) throw new Error("a chunk without a length");
    const from = line + 2;
    if (text.slice(from + length, from + length + 2) !== "\r\n") throw new Error("a chunk of another length");
    if (length === 0) return pieces.join("");
    pieces.push(text.slice(from, from + length));
    at = from + length + 2;
  }
}

export async function connectTo(url: string): Promise<Connection> {
  const { hostname, port, host } = new URL(url);
  const opened = Promise.withResolvers<Connection>();
  let connection: Connection | null = null;
  await Bun.connect<Connection>({
    hostname,
    port: Number(port),
    socket: {
      open(socket) {
        connection = new Connection(socket, host);
        opened.resolve(connection);
      },
      data: (_, data) => connection?.read(data),
      drain: () => connection?.write(),
      close: () => connection?.end("the connection was closed before the answer was whole"),
      error: (_, cause) => connection?.end(String(cause)),
      timeout: () => connection?.end(`no answer within ${answer_ms_max} ms`),
      connectError: (_, cause) => opened.reject(cause),
    },
  });
  return opened.promise;
}

export interface Pool {
  ask(request: Request): Promise<Reply>;
  close(): void;
}

/** A connection pool that opens as many connections as there are concurrent requests. */
export function pool(url: string): Pool {
  const idle: Connection[] = [];
  return {
    async ask(request) {
      let connection = idle.pop();
      while (connection && !connection.isOpen) connection = idle.pop();
      connection ??= await connectTo(url);
      const reply = await connection.ask(request);
      if (connection.isOpen) idle.push(connection);
      return reply;
    },
    close() {
      for (const connection of idle) connection.close();
    },
  };
}
