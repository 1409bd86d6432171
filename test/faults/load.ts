// Clients of several organizations that go on asking whatever happens, in all three protocols: streams, answers that are
// collected from one, and answers that engines are asked for whole; short and long, some of thousands of tokens, whose holds
// grow; and some leave. Each keeps a book of what it received.

import type { Chance } from "./chance.ts";
import { protocols, type Spoken } from "./protocols.ts";
import { model, type Node, unstreamed_tokens_max } from "./rig.ts";

export interface Received {
  /** Stands in the request, so that the engine's book can be held against ours. */
  marker: string;
  /** Of the answer's header; null where no answer came. */
  requestId: string | null;
  status: number | null;
  /** What its engine was asked for, and what came of it. */
  wanted: number;
  tokens: number;
  /** The answer came whole, with its end. */
  complete: boolean;
  stream: boolean;
  /** Its engine was asked for it whole. */
  isWhole: boolean;
  /** How fast its engine was asked to be. */
  tokensPerSecond: number;
  began_ms: number;
  ended_ms: number;
}

export interface Load {
  readonly received: readonly Received[];
  /** Asks no more, and resolves when every client has its answer, or has lost hope. */
  stop(): Promise<void>;
}

/** No answer of the run takes longer, unless its node is gone or frozen. */
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
    const stream = chance.next() < 0.7;
    const isWhole = !stream && chance.next() < 0.4;
    const isLong = !isWhole && chance.next() < 0.04;
    const short = isWhole ? 1 + chance.below(unstreamed_tokens_max) : 5 + chance.below(60);
    const wanted = isLong ? 2_000 + chance.below(5_000) : short;
    const tokensPerSecond = isLong ? 20 * options.tokensPerSecond : options.tokensPerSecond;
    const marker = `m${(count++).toString(36).padStart(6, "0")}`;
    const protocol = chance.pick(protocols);
    const prompt = `[simulator: tps=${tokensPerSecond} tokens=${wanted}] ${marker}`;
    const leaves = chance.next() < 0.2;
    const leavesAfter = leaves ? 1 + chance.below(wanted) : Number.POSITIVE_INFINITY;
    const leavesAfter_ms = leaves && !stream ? chance.below(600) : patience_ms;
    const entry: Received = {
      ...{
        marker,
        requestId: null,
        status: null,
        wanted,
        tokens: 0,
        complete: false,
        stream,
        isWhole,
        tokensPerSecond,
      },
      ...{ began_ms: Date.now(), ended_ms: Number.POSITIVE_INFINITY },
    };
    received.push(entry);
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), leavesAfter_ms);
    try {
      const response = await fetch(node.url + protocol.path, {
        method: "POST",
        headers: {
          authorization: `Bearer ${chance.pick(keys)}`,
          "content-type": "application/json",
          connection: "close",
        },
        body: JSON.stringify({ model, stream, ...protocol.body(prompt, isWhole ? unstreamed_tokens_max : undefined) }),
        signal: abort.signal,
      });
      entry.requestId = response.headers.get("x-service-request-id");
      entry.status = response.status;
      if (response.status !== 200) {
        await response.text();
        await Bun.sleep(response.status === 429 || response.status === 503 ? 50 : 10);
        return;
      }
      if (stream) await readStream(response, protocol, entry, () => entry.tokens >= leavesAfter && abort.abort());
      else readWhole((await response.json()) as Whole, protocol, entry);
    } catch {
      // Its node is gone, or it left.
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

interface Whole {
  usage: Record<string, number>;
}

function readWhole({ usage }: Whole, protocol: Spoken, entry: Received): void {
  entry.tokens = protocol.tokensOf(usage);
  entry.complete = true;
}

/** `counted`: it has counted some, and the answer is not whole yet. */
async function readStream(response: Response, protocol: Spoken, entry: Received, counted: () => void): Promise<void> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk, { stream: true });
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) {
      if (protocol.token.test(frame)) entry.tokens += 1;
      if (protocol.end.test(frame)) entry.complete = true;
    }
    if (!entry.complete) counted();
  }
}
