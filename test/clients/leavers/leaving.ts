// Clients that leave in the middle of a response, at a node of this checkout in front of a real engine. Compares the
// tokens that they are charged with those that the engine generated (by its metrics), and with those of the text that
// the clients had received (by the engine's /tokenize).

import { dialects } from "../../../src/core/protocol/dialects.ts";
import { type UpstreamProtocol, upstreamProtocols } from "../../../src/core/upstream/codecs.ts";
import { generatedTokens } from "../../../src/features/probing/engine-load.ts";
import { chanceOf } from "../../faults/chance.ts";
import { endedReceipt } from "../../harness/receipts.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

export interface Place {
  /** The engine's base URL, with `/v1`. */
  engine: string;
  /** The engine's name for the model. */
  name: string;
  key: string;
  protocols: readonly UpstreamProtocol[];
}

export interface Rounds {
  /** The number of rounds for each protocol of the engine. */
  rounds: number;
  /** The number of characters after which a client leaves is random, and at most this. */
  characters_max: number;
  seed: number;
  questions: readonly string[];
  /** Questions that are asked first, and whose responses are read to their end. */
  taught: readonly string[];
}

export interface Left {
  client: UpstreamProtocol;
  engine: UpstreamProtocol;
  isWhole: boolean;
  /** The number of tokens of the text that the client had received. */
  read: number;
  charged: number;
  /** The number of tokens that the engine generated; null if the engine does not report it. */
  made: number | null;
  source: string;
}

const tokens_max = 1_500;

export async function leaveAll(place: Place, rounds: Rounds, told: (one: Left) => void): Promise<Left[]> {
  const chance = chanceOf(rounds.seed);
  const service = await startSluice({ config: configTo(place), env: { ENGINE_KEY: place.key }, store: "pglite" });
  const all: Left[] = [];
  try {
    const ask = async (engine: UpstreamProtocol, question: string, characters: number) => {
      const one = await leave(service, place, { client: chance.pick(upstreamProtocols), engine }, question, characters);
      told(one);
      all.push(one);
    };
    // From complete responses, the route first learns how many characters a token has in each language.
    for (const question of rounds.taught)
      for (const engine of place.protocols) await ask(engine, question, Number.POSITIVE_INFINITY);
    for (let round = 0; round < rounds.rounds; round++)
      for (const engine of place.protocols)
        await ask(engine, chance.pick(rounds.questions), 1 + chance.below(rounds.characters_max));
  } finally {
    service.signal("SIGKILL");
    await service.exited;
  }
  return all;
}

function configTo({ engine, name, protocols }: Place): string {
  const upstream = (protocol: string) =>
    `  ${protocol}: { url: "${engine}", protocol: ${protocol}, api_key: "\${ENGINE_KEY}" }`;
  const entry = (protocol: string) => `  - id: engine/${protocol}
    created: 1790000000
    context_window: 32768
    max_output_tokens: 4096
    capabilities: [reasoning]
    prices: { input: 0.001, output: 0.1 }
    routes: [{ upstream: ${protocol}, model: "${name}" }]`;
  return `upstreams:\n${protocols.map(upstream).join("\n")}\nmetering: { currency: USD }\nmodels:\n${protocols.map(entry).join("\n")}\n`;
}

interface Wire {
  path: string;
  body(question: string): Record<string, unknown>;
  /** The text in one event, including reasoning. */
  text(event: Streamed): string | undefined;
}

/** The members of the three protocols' events that this file reads. */
interface Streamed {
  type?: string;
  delta?: string | { thinking?: string; text?: string };
  choices?: { delta: { reasoning_content?: string; content?: string } }[];
}

const wires: Record<UpstreamProtocol, Wire> = {
  "openai-chat": {
    path: "/v1/chat/completions",
    body: (content) => ({ messages: [{ role: "user", content }], max_tokens: tokens_max }),
    text: ({ choices }) =>
      choices?.map(({ delta }) => `${delta.reasoning_content ?? ""}${delta.content ?? ""}`).join(""),
  },
  "anthropic-messages": {
    path: "/v1/messages",
    body: (content) => ({ messages: [{ role: "user", content }], max_tokens: tokens_max }),
    text: ({ delta }) => (typeof delta === "object" ? (delta.thinking ?? delta.text) : ""),
  },
  "openai-responses": {
    path: "/v1/responses",
    body: (input) => ({ input, max_output_tokens: tokens_max }),
    text: ({ type, delta }) =>
      typeof delta === "string" && /^response\.(output|reasoning)_text\.delta$/.test(type ?? "") ? delta : "",
  },
};

/** Reads this many characters of the response, reasoning included, and then closes the connection. */
async function leave(
  service: Sluice,
  place: Place,
  { client, engine }: Pick<Left, "client" | "engine">,
  question: string,
  characters: number,
): Promise<Left> {
  const { path, body, text: textOf } = wires[client];
  const before = await settledCount(place);
  const leaving = new AbortController();
  const asked = { model: `engine/${engine}`, stream: true, ...body(question) };
  let response: Response;
  // On a busy machine, the ledger may be slow and the response a 503, so the request is retried.
  const isTaken = async () => {
    response = await service.post(path, asked, { signal: leaving.signal });
    if (response.status !== 200 && response.status !== 503)
      throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.status === 200;
  };
  await until(isTaken, 60_000, "an answer");
  const id = response!.headers.get("x-service-request-id")!;
  const reader = response!.body!.getReader();
  const decoder = new TextDecoder();
  let [pending, text, isWhole] = ["", "", false];
  while (text.length < characters && !isWhole) {
    const { done, value } = await reader.read();
    isWhole = done;
    const lines = (pending + decoder.decode(value, { stream: true })).split("\n");
    pending = lines.pop()!;
    for (const line of lines)
      if (line.startsWith("data: {")) text += textOf(JSON.parse(line.slice("data: ".length))) ?? "";
  }
  leaving.abort();
  const { output_tokens: charged, source } = (await endedReceipt(service, id, { deadline_ms: 20_000 })).usage;
  const after = await settledCount(place);
  const made = before === null || after === null ? null : after - before;
  return { client, engine, isWhole, read: await tokensOf(place, text), charged, made, source };
}

/** Waits until the engine generates no more tokens, and returns how many it has generated in total. */
async function settledCount({ engine }: Place): Promise<number | null> {
  const count = async () => {
    const page = await fetch(new URL("/metrics", engine));
    return page.ok ? generatedTokens(await page.text(), dialects.generic.load.generated) : null;
  };
  let now = await count();
  const isStill = async () => {
    const earlier = now;
    await Bun.sleep(200);
    now = await count();
    return now === earlier;
  };
  await until(isStill, 20_000, "the engine to stop");
  return now;
}

/** The number of tokens of a text, counted by the engine. */
async function tokensOf({ engine, name }: Place, text: string): Promise<number> {
  const response = await fetch(new URL("/tokenize", engine), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: name, prompt: text, content: text, add_special_tokens: false }),
  });
  const { count, tokens } = (await response.json()) as { count?: number; tokens?: unknown[] };
  return count ?? tokens!.length;
}

/**
 * The relative error of the charges of these requests. The sum of the charges may be anything from the tokens received
 * to the tokens generated; the difference between these two was in transit when the clients left.
 */
export function errorOf(some: readonly Left[]): number {
  const { read, charged, made } = sumsOf(some);
  return charged > made ? charged / made - 1 : Math.min(0, charged / read - 1);
}

export function summaryOf(some: readonly Left[]): string {
  const { read, charged, made } = sumsOf(some);
  return `${some.length}, ${read} read, ${made} made, ${charged} charged: ${(errorOf(some) * 100).toFixed(1)} % off`;
}

function sumsOf(some: readonly Left[]): { read: number; charged: number; made: number } {
  const sum = (of: (one: Left) => number) => some.reduce((total, one) => total + of(one), 0);
  return { read: sum((one) => one.read), charged: sum((one) => one.charged), made: sum((one) => one.made ?? one.read) };
}

export function shownOf({ client, engine, isWhole, read, charged, made, source }: Left): string {
  const how = `${isWhole ? "whole" : "left "} ${client} → ${engine}`;
  return `${how}: ${read} read, ${made ?? "?"} made, ${charged} charged (${source})`;
}
