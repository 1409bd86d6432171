// Clients of several organizations that send requests throughout the run, in all three protocols. They ask for streams,
// for responses that the node collects from an engine's stream, and for responses that the engine sends in one piece.
// Some responses have thousands of tokens, so that their holds grow, and some clients leave early. Some requests are
// for embeddings, ranks and completions. Each client records what it received.

import type { Chance } from "./chance.ts";
import { type Node, post } from "./rig.ts";
import { type Answer, type Wish, wishOf } from "./wishes.ts";

export interface Received {
  /** A unique word in the request, by which the engine's record of the request is matched with the client's. */
  marker: string;
  /** The request's ID from the response header; null if no response came. */
  requestId: string | null;
  status: number | null;
  /** The number of output tokens that the engine was asked for, and the number that the client received. */
  wanted: number;
  tokens: number;
  /**
   * The input tokens that the response reported; null if it reported none, or if the node did not pass the engine's
   * usage on unchanged.
   */
  inputTokens: number | null;
  /** The number of searches; each has a price besides that of the tokens. */
  searches: number;
  /** Whether the response was complete, including its end. */
  complete: boolean;
  stream: boolean;
  /** The speed of generation that the request asks of the simulated engine. */
  tokensPerSecond: number;
  began_ms: number;
  ended_ms: number;
}

export interface Load {
  readonly received: readonly Received[];
  /** Sends no more requests, and resolves when every client has its response, or has given up. */
  stop(): Promise<void>;
}

/** The timeout of a request, in milliseconds. No response takes longer unless its node is dead or frozen. */
const patience_ms = 15_000;

export function startLoad(options: {
  nodes: readonly Node[];
  keys: readonly string[];
  clients: number;
  chance: Chance;
  tokensPerSecond: number;
}): Load {
  const { nodes, keys, chance } = options;
  const received: Received[] = [];
  let going = true;
  let count = 0;

  async function client(): Promise<void> {
    while (going) {
      const node = chance.pick(nodes);
      if (!node.running) {
        await Bun.sleep(20);
        continue;
      }
      await ask(node);
    }
  }

  async function ask(node: Node): Promise<void> {
    const marker = `m${(count++).toString(36).padStart(6, "0")}`;
    const wish = wishOf(chance, marker, options.tokensPerSecond);
    const { spoken, body, stream, wanted, tokensPerSecond, passed } = wish;
    const leaves = chance.next() < 0.2;
    const leavesAfter = leaves ? 1 + chance.below(wanted + 1) : Number.POSITIVE_INFINITY;
    const leavesAfter_ms = leaves && !stream ? chance.below(600) : patience_ms;
    const entry: Received = {
      marker,
      requestId: null,
      status: null,
      wanted,
      tokens: 0,
      inputTokens: null,
      searches: passed?.searches ?? 0,
      complete: false,
      stream,
      tokensPerSecond,
      began_ms: Date.now(),
      ended_ms: Number.POSITIVE_INFINITY,
    };
    received.push(entry);
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), leavesAfter_ms);
    try {
      const how = { headers: { connection: "close" }, signal: abort.signal };
      const response = await post(node, spoken.path, chance.pick(keys), body, how);
      entry.requestId = response.headers.get("x-service-request-id");
      entry.status = response.status;
      if (response.status !== 200) {
        await response.text();
        await Bun.sleep(response.status === 429 || response.status === 503 ? 50 : 10);
        return;
      }
      if (stream) await readStream(response, wish, entry, () => entry.tokens >= leavesAfter && abort.abort());
      else readWhole((await response.json()) as Answer, wish, entry);
    } catch {
      // The client's node is down, or the client left.
      await Bun.sleep(10);
    } finally {
      clearTimeout(timer);
      entry.ended_ms = Date.now();
    }
  }

  const clients = Array.from({ length: options.clients }, client);
  return {
    received,
    async stop() {
      going = false;
      await Promise.all(clients);
    },
  };
}

function readWhole(answer: Answer, { spoken, passed }: Wish, entry: Received): void {
  entry.tokens = spoken.tokensOf(answer.usage);
  if (passed) entry.inputTokens = answer.usage.prompt_tokens!;
  entry.complete = passed?.isWhole(answer) ?? true;
}

/**
 * Reads a stream and adds its tokens to the entry. `counted` is called after each addition until the response is
 * complete.
 */
async function readStream(response: Response, { spoken }: Wish, entry: Received, counted: () => void): Promise<void> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk, { stream: true });
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) {
      if (spoken.token.test(frame)) entry.tokens += 1;
      if (spoken.end.test(frame)) entry.complete = true;
    }
    if (!entry.complete) counted();
  }
}
