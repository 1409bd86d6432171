/**
 * An engine that does as a row of the table says, and knows the true usage: it writes a fixed text in tokens of o200k,
 * as a model of the harmony format does. The path says which row is asked, and `temperature` how the answer ends.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decode, encode } from "gpt-tokenizer/encoding/o200k_base";
import { noUsage, type Usage } from "../../src/core/inference/usage.ts";
import type { Row } from "./rows.ts";

/**
 * The key is how an answer ends; the value is the `temperature` that asks for this end, a number that an engine is sent
 * as it is.
 */
export const temperatures = { complete: 0, hangs: 0.1, breaks: 0.2, endless: 0.3 } as const;
type End = keyof typeof temperatures;

/** How many tokens are written before an answer hangs, breaks or ends. */
const tokens_written = 400;
const tokens_endless = 6_000;
/**
 * The tokens at the beginning of an answer (channel, its name, and the beginning of the message), and those of each
 * further message (its head, and its end).
 */
const openingTokens = 3;
const messageTokens = 6;

const text = ["README.md", "src/core/usage/tally.ts"]
  .map((file) => readFileSync(join(import.meta.dir, "../..", file), "utf8"))
  .join("\n")
  .replace(/[^ -~\n]/g, "");
const tokens = encode(text);

const toolName = "write_file";

/** A piece of an answer: what one chunk says, and how many tokens the model has written by then. */
interface Piece {
  delta: object;
  produced: number;
}

const kindsOf = {
  text: ["text"],
  "reasoning and text": ["reasoning", "text"],
  "reasoning and a call": ["reasoning", "call"],
} as const;

function piecesOf({ tokens_per_delta, parts, hidden }: Row, count: number): Piece[] {
  const pieces: Piece[] = [];
  let produced = openingTokens + hidden;
  const kinds = kindsOf[parts];
  const share = Math.floor(count / kinds.length);
  for (const [at, kind] of kinds.entries()) {
    if (at > 0) produced += messageTokens;
    const said = tokens.slice(at * share, (at + 1) * share);
    const own = kind === "call" ? encode(JSON.stringify({ text: decode(said) })) : said;
    if (kind === "call") {
      const name = `assistant to=functions.${toolName}`;
      produced += 1 + encode(name).length;
      pieces.push({ delta: callDelta({ id: "call_1", name: toolName, args: "" }), produced });
    }
    for (let from = 0; from < own.length; from += tokens_per_delta) {
      const some = own.slice(from, from + tokens_per_delta);
      produced += some.length;
      pieces.push({ delta: deltaOf(kind, decode(some)), produced });
    }
  }
  return pieces;
}

function deltaOf(kind: "text" | "reasoning" | "call", said: string): object {
  if (kind === "text") return { content: said };
  if (kind === "reasoning") return { reasoning_content: said };
  return callDelta({ args: said });
}

function callDelta({ id, name, args }: { id?: string; name?: string; args: string }): object {
  const fn = name === undefined ? { arguments: args } : { name, arguments: args };
  return { tool_calls: [{ index: 0, ...(id === undefined ? {} : { id }), function: fn }] };
}

/** The true usage: what the engine has read and written. */
export function truthOf(row: Row, prompt: number, produced: number): Usage {
  return {
    ...noUsage,
    inputTokens: prompt - row.cached - row.written,
    cachedInputTokens: row.cached,
    cacheWriteTokens: row.written,
    outputTokens: produced,
    reasoningTokens: row.hidden,
    source: "reported",
  };
}

/**
 * A running truth engine. If it never reports, or the client left its answer, nobody knows how much of the prompt was
 * cached.
 */
export interface TruthEngine {
  url: string;
  /** The tokens that an answer of this row comes to, if it ends like this. */
  produced(row: Row, end: End): number;
  /** The number of requests so far. */
  readonly asked: number;
  /** How many deltas the client of such an answer is sent. */
  deltas(row: Row, end: End): number;
  /** The tokens of an endless answer after this many deltas. */
  producedAfter(row: Row, deltas: number): number;
  stop(): Promise<void>;
}

export function truthEngine(rows: readonly Row[], prompt: number): TruthEngine {
  const waiting = new Set<() => void>();
  let asked = 0;
  const server = Bun.serve({ port: 0, idleTimeout: 0, fetch: answer });

  const endOf = (row: Row, end: End): Piece[] => piecesOf(row, end === "endless" ? tokens_endless : tokens_written);
  const told = (row: Row, produced: number) => row.report?.(truthOf(row, prompt, produced)) ?? {};

  async function answer(request: Request): Promise<Response> {
    asked += 1;
    const at = Number(/\/row(\d+)\//.exec(new URL(request.url).pathname)?.[1]);
    const row = rows[at]!;
    const body = (await request.json()) as { stream?: boolean; temperature: number };
    const end = (Object.keys(temperatures) as End[]).find((name) => temperatures[name] === body.temperature)!;
    const pieces = endOf(row, end);
    return body.stream ? streamed(row, pieces, end) : whole(row, pieces, end);
  }

  async function whole(row: Row, pieces: Piece[], end: End): Promise<Response> {
    if (end === "breaks") return new Response("{", { headers: { "content-type": "application/json" } });
    if (end === "hangs") await Bun.sleep(1_000);
    const produced = pieces.at(-1)!.produced + 1;
    const { wire, choice } = told(row, produced);
    const message: Record<string, string> = { role: "assistant", content: "" };
    const calls: { id: string; type: string; function: { name: string; arguments: string } }[] = [];
    for (const { delta } of pieces) collect(message, calls, delta);
    const said = calls.length > 0 ? { ...message, tool_calls: calls } : message;
    const finish_reason = calls.length > 0 ? "tool_calls" : "stop";
    return Response.json({ choices: [{ index: 0, message: said, finish_reason, ...choice }], ...wire });
  }

  function streamed(row: Row, pieces: Piece[], end: End): Response {
    const encoder = new TextEncoder();
    const chunk = (delta: object, finish_reason: string | null, { wire, choice }: ReturnType<typeof told>) =>
      encoder.encode(
        `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason, ...choice }], ...wire })}\n\n`,
      );
    async function* frames(): AsyncGenerator<Uint8Array, void, void> {
      for (const [at, { delta, produced }] of pieces.entries()) {
        yield chunk(delta, null, row.isRunning ? told(row, produced) : {});
        if (at % 8 === 7) await Bun.sleep(1);
      }
      if (end === "breaks") return;
      if (end === "hangs") {
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.add(resolve);
        await promise;
      }
      const isCall = row.parts === "reasoning and a call";
      yield chunk({}, isCall ? "tool_calls" : "stop", told(row, pieces.at(-1)!.produced + 1));
      yield encoder.encode("data: [DONE]\n\n");
    }
    return new Response(frames() as unknown as ReadableStream, { headers: { "content-type": "text/event-stream" } });
  }

  return {
    url: server.url.origin,
    get asked() {
      return asked;
    },
    produced: (row, end) => endOf(row, end).at(-1)!.produced + (end === "complete" ? 1 : 0),
    deltas: (row, end) => endOf(row, end).length - (row.parts === "reasoning and a call" ? 1 : 0),
    producedAfter: (row, deltas) => endOf(row, "endless").at(deltas - 1)!.produced,
    async stop() {
      for (const go of waiting) go();
      await server.stop(true);
    },
  };
}

function collect(
  message: Record<string, string>,
  calls: { id: string; type: string; function: { name: string; arguments: string } }[],
  delta: object,
): void {
  for (const [name, value] of Object.entries(delta)) {
    if (name !== "tool_calls") {
      message[name] = `${message[name] ?? ""}${value}`;
      continue;
    }
    const [{ id, function: fn }] = value as [{ id?: string; function: { name: string; arguments: string } }];
    if (id !== undefined) calls.push({ id, type: "function", function: { name: fn.name, arguments: "" } });
    calls.at(-1)!.function.arguments += fn.arguments;
  }
}
