// Clients that go on asking whatever happens: streams and whole answers, short and long, some of which leave. Each keeps
// a book of what it received.

import type { Chance } from "./chance.ts";
import { model, type Node } from "./rig.ts";

export interface Received {
  /** Stands in the request, so that the engine's book can be held against ours. */
  marker: string;
  /** Of the answer's header; null where no answer came. */
  requestId: string | null;
  status: number | null;
  tokens: number;
  /** The answer came whole, with its end. */
  complete: boolean;
  stream: boolean;
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
  key: string;
  clients: number;
  chance: Chance;
  tokensPerSecond: number;
}): Load {
  const { nodes, key, chance } = options;
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
    const words = 5 + chance.below(60);
    const marker = `m${(count++).toString(36).padStart(6, "0")}`;
    const stream = chance.next() < 0.7;
    const leavesAfter = chance.next() < 0.2 ? 1 + chance.below(words) : Number.POSITIVE_INFINITY;
    const entry: Received = { marker, requestId: null, status: null, tokens: 0, complete: false, stream };
    received.push(entry);
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), patience_ms);
    try {
      const response = await fetch(`${node.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json", connection: "close" },
        body: JSON.stringify({
          model,
          stream,
          messages: [
            {
              role: "user",
              content: `[simulator: tps=${options.tokensPerSecond}] ${marker}${" hello".repeat(words - 2)}`,
            },
          ],
        }),
        signal: abort.signal,
      });
      entry.requestId = response.headers.get("x-service-request-id");
      entry.status = response.status;
      if (response.status !== 200) {
        await response.text();
        await Bun.sleep(response.status === 429 || response.status === 503 ? 50 : 10);
        return;
      }
      if (stream) await readStream(response, entry, leavesAfter, abort);
      else readWhole((await response.json()) as Whole, entry);
    } catch {
      // Its node is gone, or it left.
      await Bun.sleep(10);
    } finally {
      clearTimeout(timer);
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
  usage: { completion_tokens: number };
}

function readWhole(answer: Whole, entry: Received): void {
  entry.tokens = answer.usage.completion_tokens;
  entry.complete = true;
}

async function readStream(
  response: Response,
  entry: Received,
  leavesAfter: number,
  abort: AbortController,
): Promise<void> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk, { stream: true });
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) {
      if (/"delta":\{"content":"[^"]/.test(frame)) entry.tokens += 1;
      if (/"finish_reason":"/.test(frame)) entry.complete = true;
    }
    if (entry.tokens >= leavesAfter && !entry.complete) return abort.abort();
  }
}
