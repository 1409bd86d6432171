// The engine behind the gateway. It responds as each prompt says. It keeps a list of what it sent, which the judge
// (judge.ts) takes as the truth.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pause } from "./pause.ts";
import { type Script, scriptIn, tokenAt } from "./script.ts";

export const model = "proof-1";

export interface Attempt {
  /** The number of tokens that the engine has written to its socket. */
  written: number;
  prompt_tokens: number;
  /** Whether the engine sent a usage report, true or false. */
  reported: boolean;
}

export interface Engine {
  port: number;
  /**
   * The attempts to serve a request, by the ID of its script (script.ts): one for each time that the gateway sent the
   * request.
   */
  book: ReadonlyMap<string, readonly Attempt[]>;
  /** The number of requests that are being served. */
  active(): number;
  /** Clears the list of attempts, so that it stays small in a long run. */
  forget(): void;
  stop(): Promise<void>;
}

interface Asked {
  script: Script;
  stream: boolean;
  wantsReport: boolean;
  prompt_tokens: number;
}

const body_bytes_max = 1024 * 1024;

export async function startEngine(): Promise<Engine> {
  const book = new Map<string, Attempt[]>();
  let active = 0;
  const server = createServer((request, response) => {
    active += 1;
    response.on("close", () => {
      active -= 1;
    });
    answer(request, response, book).catch((failure) => {
      if (!response.headersSent) response.writeHead(500, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: String(failure), type: "engine_error" } }));
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    book,
    active: () => active,
    forget: () => book.clear(),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, book: Map<string, Attempt[]>): Promise<void> {
  if (request.method === "GET") return sendJson(response, { object: "list", data: [{ id: model, object: "model" }] });
  const asked = readAsked(await readBody(request));
  if (asked === null) return sendJson(response, completionOf("none", 1, { prompt_tokens: 1, completion_tokens: 1 }));
  const attempt: Attempt = { written: 0, prompt_tokens: asked.prompt_tokens, reported: false };
  const attempts = book.get(asked.script.id);
  if (attempts) attempts.push(attempt);
  else book.set(asked.script.id, [attempt]);
  if ((attempts?.length ?? 1) > asked.script.deaths) asked.script.dies_after = null;
  await (asked.stream ? streamed(response, asked, attempt) : whole(response, asked, attempt));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > body_bytes_max) throw new Error("The body is too large.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * The script of a request (script.ts: how the engine must respond) and its options. Null: the request has no script,
 * such as a health check by the gateway.
 */
function readAsked(text: string): Asked | null {
  const body = JSON.parse(text) as {
    stream?: boolean;
    stream_options?: { include_usage?: boolean };
    messages?: { content?: unknown }[];
  };
  const prompt = textOf(body.messages?.at(-1)?.content);
  const script = scriptIn(prompt);
  if (script === null) return null;
  const stream = body.stream === true;
  const wantsReport = !stream || body.stream_options?.include_usage === true;
  return { script, stream, wantsReport, prompt_tokens: Math.ceil(prompt.length / 4) };
}

/** The text of a message's content, which a gateway may send as a list of parts. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part: { text?: string }) => part.text ?? "").join("");
}

function usageOf({ script }: Asked, { written, prompt_tokens }: Attempt) {
  const completion_tokens = script.report === "impossible" ? script.tokens * 1000 : written;
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

async function streamed(response: ServerResponse, asked: Asked, attempt: Attempt): Promise<void> {
  const { script } = asked;
  const send = (value: unknown) => response.write(`data: ${JSON.stringify(value)}\n\n`);
  response.writeHead(200, { "content-type": "text/event-stream" });
  send(chunkOf(script.id, { role: "assistant", content: "" }, null));
  for (let index = 0; index < script.tokens; index++) {
    if (script.dies_after === index) return void response.destroy();
    await pause(script.gap_ms);
    if (response.destroyed) return;
    send(chunkOf(script.id, { content: tokenAt(index) }, null));
    attempt.written += 1;
  }
  if (script.dies_after === script.tokens) return void response.destroy();
  send(chunkOf(script.id, {}, "stop"));
  if (asked.wantsReport && script.report !== "never") {
    send({ ...chunkOf(script.id, {}, null), choices: [], usage: usageOf(asked, attempt) });
    attempt.reported = true;
  }
  response.end("data: [DONE]\n\n");
}

async function whole(response: ServerResponse, asked: Asked, attempt: Attempt): Promise<void> {
  const { script } = asked;
  const dies = script.dies_after !== null;
  await pause(script.gap_ms * (script.dies_after ?? script.tokens));
  if (dies || response.destroyed) return void response.destroy();
  attempt.written = script.tokens;
  attempt.reported = script.report !== "never";
  sendJson(response, completionOf(script.id, script.tokens, attempt.reported ? usageOf(asked, attempt) : undefined));
}

const created = 1_790_000_000;

function chunkOf(id: string, delta: object, finish_reason: string | null) {
  const choices = [{ index: 0, delta, finish_reason }];
  return { id: `chatcmpl-${id}`, object: "chat.completion.chunk", created, model, choices };
}

function completionOf(id: string, tokens: number, usage: object | undefined) {
  const content = Array.from({ length: tokens }, (_, index) => tokenAt(index)).join("");
  const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
  return { id: `chatcmpl-${id}`, object: "chat.completion", created, model, choices, usage };
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}
