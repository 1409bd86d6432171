// One of the two compared nodes: an executable in a folder of its own, with the simulator as its engine.

import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../test/harness/until.ts";
import { Masks } from "./masks.ts";
import type { RawRequest } from "./requests.ts";

const start_ms = 30_000;
const answer_ms = 20_000;

/** The kinds of objects that a request may have created, each with the pattern that finds the ID in the response. */
const made: [name: string, id: RegExp][] = [
  ["organization", /^\{"id":"(org_\w+)"/m],
  ["key", /^\{"id":"(key_\w+)"/m],
  ["team", /^\{"id":"(team_\w+)"/m],
  ["operator", /^\{"id":"(op_\w+)"/m],
  ["response", /"id":"(resp_\w+)"/],
  ["request", /\r\nx-request-id: (req_\w+)/i],
];

export class ComparedNode {
  readonly #masks: Masks;
  /** This node's values for the names in braces that requests contain, such as `{key}`. */
  readonly #values = new Map<string, string>();

  private constructor(
    private readonly folder: string,
    private readonly child: Bun.Subprocess,
    private readonly ports: Record<RawRequest["port"], number>,
    hidesMessages: boolean,
  ) {
    this.#masks = new Masks(hidesMessages);
  }

  static async start(executable: string, { hidesMessages }: { hidesMessages: boolean }): Promise<ComparedNode> {
    const folder = mkdtempSync(join(tmpdir(), "sluice-compare-"));
    const operator = await freePort();
    const env = {
      PATH: process.env.PATH ?? "",
      HOME: folder,
      PORT: "0",
      SLUICE_OPERATOR_PORT: String(operator),
      SLUICE_DATA_DIR: join(folder, "data"),
      SLUICE_WARM_UP_MS: "0",
    };
    const child = Bun.spawn([executable, "serve"], {
      cwd: folder,
      env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    let out = "";
    void child.stdout.pipeTo(
      new WritableStream({
        write(chunk) {
          out += Buffer.from(chunk).toString();
        },
      }),
    );
    const serving = / serving on \S+:(\d+)\n/;
    await until(() => serving.test(out) || child.exitCode !== null, start_ms, "a node to start");
    const api = Number(serving.exec(out)?.[1]);
    if (!api) throw new Error(`${executable} did not start: ${out}`);
    const node = new ComparedNode(folder, child, { api, operator }, hidesMessages);
    await node.#furnish(executable, env);
    return node;
  }

  /** Creates the key and the operator with which requests are sent, in an organization that no request changes. */
  async #furnish(executable: string, env: Record<string, string>): Promise<void> {
    const cli = async (...words: string[]): Promise<Record<string, string>> => {
      const run = Bun.spawn([executable, ...words, "--json"], {
        cwd: this.folder,
        env,
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      const [text, problem, code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited]);
      if (code !== 0) throw new Error(`sluice ${words.join(" ")}: ${problem}`);
      return JSON.parse(text);
    };
    await cli("org", "create", "asking", "--plan", "unlimited");
    const { key } = await cli("key", "create", "--org", "asking", "--name", "asking");
    const { token } = await cli("operator", "create", "asking", "--role", "admin");
    this.#values.set("credential.api", key!);
    this.#values.set("credential.operator", token!);
    for (const secret of [key!, token!]) this.#masks.mask(secret);
  }

  /** Sends the request, and returns the response as text, masked. */
  async ask({ port, head, body }: RawRequest): Promise<string> {
    const named = (text: string) =>
      text.replace(/\{([a-z]+)\}/g, (_, name: string) => {
        return this.#values.get(name === "credential" ? `credential.${port}` : name) ?? "nobody";
      });
    const sent = named(body);
    const lines = [...head.map(named), `content-length: ${Buffer.byteLength(sent)}`, "", sent];
    const text = await exchange(this.ports[port], lines.join("\r\n"));
    this.#remember(text);
    return this.#masks.mask(inOneOrder(text));
  }

  #remember(answer: string): void {
    for (const [name, pattern] of made) {
      const id = pattern.exec(answer)?.[1];
      if (id) this.#values.set(name, id);
    }
  }

  async stop(): Promise<void> {
    this.child.kill();
    await this.child.exited;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Sends a text, and returns all bytes that the node sends until it closes the connection. */
function exchange(port: number, sent: string): Promise<string> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    const end = (note: string) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(Buffer.concat(pieces).toString() + note);
    };
    const socket = connect(port, "127.0.0.1", () => socket.write(sent));
    const timer = setTimeout(() => end(`\n<nothing more within ${answer_ms} ms>`), answer_ms);
    socket.on("data", (piece) => pieces.push(piece));
    socket.on("end", () => end(""));
    socket.on("error", ({ message }) => end(`\n<${message}>`));
  });
}

/**
 * Sorts the headers and joins the chunks of a body, because neither the order of headers nor the division into chunks
 * matters.
 */
function inOneOrder(answer: string): string {
  const end = answer.indexOf("\r\n\r\n");
  if (end < 0) return answer;
  const [status, ...headers] = answer.slice(0, end).split("\r\n");
  const body = answer.slice(end + 4);
  const isChunked = headers.some((header) => /^transfer-encoding: chunked$/i.test(header));
  return [status, ...headers.sort(), "", isChunked ? withoutChunks(body) : body].join("\n");
}

function withoutChunks(body: string): string {
  const bytes = Buffer.from(body);
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const line = bytes.indexOf("\r\n", at);
    const size = Number.parseInt(bytes.toString("latin1", at, line), 16);
    if (line < 0 || !(size > 0)) break;
    pieces.push(bytes.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
  return Buffer.concat(pieces).toString();
}

async function freePort(): Promise<number> {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = server;
  await server.stop(true);
  return port!;
}
