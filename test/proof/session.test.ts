// The crash test as a whole, against a gateway of fifty lines: it passes a gateway that counts each delta, and objects to
// one that does not.

import { expect, test } from "bun:test";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { startEngine } from "../../proof/engine.ts";
import { type Outcome, runSession } from "../../proof/session.ts";
import type { Site, Target, Usage } from "../../proof/target.ts";
import { wireTo } from "../../proof/wire.ts";

// The tests run at once, as they wait for most of their time.
test.concurrent("a gateway that counts each delta that it forwards passes", async () => {
  const { findings, requests, delivered_tokens } = await sessionWith((tokens) => tokens);
  expect(findings).toEqual([]);
  expect(requests).toBeGreaterThan(10);
  expect(delivered_tokens).toBeGreaterThan(100);
}, 30_000);

test.concurrent("a gateway that counts everything twice is found", async () => {
  const { findings } = await sessionWith((tokens) => 2 * tokens);
  expect(new Set(findings.map(({ verdict }) => verdict))).toContain("doubled");
}, 30_000);

test.concurrent("a gateway that counts nothing is found", async () => {
  const { findings } = await sessionWith(() => 0);
  expect(new Set(findings.map(({ verdict }) => verdict))).toContain("lost");
}, 30_000);

async function sessionWith(counted: (tokens: number) => number): Promise<Outcome> {
  const engine = await startEngine();
  const wire = await wireTo({ port: engine.port });
  const gateway = await smallGateway(wire.port, counted);
  const door = await wireTo({ port: gateway.port });
  const links = [
    { name: "clients and the gateway", node: null, wire: door },
    { name: "the gateway and its engine", node: null, wire },
  ];
  const doors = [{ node: "one", url: `http://127.0.0.1:${door.port}` }];
  try {
    const stage = { target, site: gateway.site, engine, links, doors };
    return await runSession(stage, { seed: 7, faults: 3, clients: 4, tokens_max: 40, only: "break once" });
  } finally {
    await gateway.site.stop();
    await Promise.all([door.stop(), wire.stop(), engine.stop()]);
  }
}

const target: Target = {
  name: "small",
  version: async () => "1",
  settings: "",
  settled_ms_max: 10_000,
  uncounted_ms_max: 0,
  cut_off_ms_max: 0,
  estimate_share_max: 0,
  start: () => Promise.reject(new Error("It is started by the test.")),
};

/** A gateway that admits up to the limit, forwards the engine's bytes, and counts words as they pass. */
async function smallGateway(engine_port: number, counted: (tokens: number) => number) {
  const usage = new Map<string, Usage>();
  const limits = new Map<string, number>();
  const usageOf = (key: string) => usage.get(key) ?? { input_tokens: 0, output_tokens: 0 };
  let running = 0;
  const server = createServer(async (request, response) => {
    const key = request.headers.authorization?.slice("Bearer ".length) ?? "";
    const text = await new Response(Readable.toWeb(request) as ReadableStream).text();
    const { max_tokens } = JSON.parse(text) as { max_tokens: number };
    const left = limits.get(key) ?? Number.POSITIVE_INFINITY;
    if (left < max_tokens) return void response.writeHead(429).end();
    limits.set(key, left - max_tokens);
    running += 1;
    const tokens = await forwarded(engine_port, text, response);
    running -= 1;
    limits.set(key, (limits.get(key) ?? 0) + max_tokens - tokens);
    usage.set(key, { input_tokens: 0, output_tokens: usageOf(key).output_tokens + counted(tokens) });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const site: Site = {
    nodes: [],
    parts: [],
    links: [],
    model: "proof-1",
    async createKey(name, output_tokens_max) {
      if (output_tokens_max !== null) limits.set(name, output_tokens_max);
      return { id: name, secret: name };
    },
    usage: async (keys) => new Map(keys.map(({ id }) => [id, usageOf(id)])),
    running: async () => running,
    lastWords: () => "",
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return { port: (server.address() as AddressInfo).port, site };
}

/** Forwards an answer, and returns how many tokens were forwarded. */
async function forwarded(engine_port: number, body: string, response: ServerResponse): Promise<number> {
  const abort = new AbortController();
  response.on("close", () => abort.abort());
  let tokens = 0;
  try {
    const url = `http://127.0.0.1:${engine_port}/v1/chat/completions`;
    const headers = { connection: "close" };
    const answer = await fetch(url, { method: "POST", headers, body, signal: abort.signal });
    response.writeHead(answer.status);
    for await (const bytes of answer.body as unknown as AsyncIterable<Uint8Array>) {
      response.write(bytes);
      tokens += wordsIn(new TextDecoder().decode(bytes));
    }
    response.end();
  } catch {
    response.destroy();
  }
  return tokens;
}

/**
 * Counts the tokens of the engine in a text: each is a word with a space before it, in a field of its own or in one
 * text.
 */
function wordsIn(text: string): number {
  const contents = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, content = ""]) => content);
  return contents.reduce((sum, content) => sum + content.split(" ").length - 1, 0);
}
