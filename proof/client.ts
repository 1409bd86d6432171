// A client of the gateway: it sends a request, reads the response, and may disconnect in the middle. It records what it
// received.

import type { Script } from "./script.ts";
import { promptOf, tokensIn } from "./script.ts";

export interface Seen {
  script: Script;
  key: string;
  node: string;
  stream: boolean;
  began_ms: number;
  ended_ms: number;
  /** The status of the response. Null if there was none. */
  status: number | null;
  /** The number of tokens that the client received. */
  tokens: number;
  /** Whether the response was complete, including its protocol's end. */
  isWhole: boolean;
  /** Whether the client itself disconnected early. */
  hasLeft: boolean;
}

export interface Asking {
  url: string;
  node: string;
  secret: string;
  key: string;
  model: string;
  script: Script;
  stream: boolean;
  /** The number of tokens after which the client disconnects. Null: it stays to the end. */
  leaves_after: number | null;
  deadline_ms: number;
}

export async function ask(asking: Asking): Promise<Seen> {
  const { script, key, node, stream } = asking;
  const seen: Seen = {
    script,
    key,
    node,
    stream,
    began_ms: Date.now(),
    ended_ms: 0,
    status: null,
    tokens: 0,
    isWhole: false,
    hasLeft: false,
  };
  const abort = new AbortController();
  // The gateway cannot distinguish a client that gives up waiting from one that disconnects.
  const timer = setTimeout(() => {
    seen.hasLeft = true;
    abort.abort();
  }, asking.deadline_ms);
  try {
    const response = await fetch(`${asking.url}/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${asking.secret}`,
        "content-type": "application/json",
        // The connection serves this request alone, because a runtime may send a request a second time when a reused
        // connection breaks.
        connection: "close",
      },
      body: JSON.stringify(bodyOf(asking)),
      signal: abort.signal,
    });
    seen.status = response.status;
    if (stream && response.status === 200) await readStream(response, asking, seen, abort);
    else await readWhole(response, asking, seen, abort);
  } catch {
    // Broken connections are expected in this test; what was received until then is recorded.
  } finally {
    clearTimeout(timer);
    abort.abort();
    seen.ended_ms = Date.now();
  }
  return seen;
}

function bodyOf({ model, script, stream }: Asking): object {
  return {
    model,
    messages: [{ role: "user", content: promptOf(script) }],
    max_tokens: script.tokens,
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
  };
}

async function readStream(response: Response, asking: Asking, seen: Seen, abort: AbortController): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  let hasFinish = false;
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      const data = line.slice(5).trim();
      if (data === "[DONE]") {
        seen.isWhole = hasFinish;
        return;
      }
      const choice = (JSON.parse(data) as Chunk).choices?.[0];
      seen.tokens += tokensIn(choice?.delta?.content ?? "");
      if (choice?.finish_reason) hasFinish = true;
    }
    if (asking.leaves_after !== null && seen.tokens >= asking.leaves_after) {
      seen.hasLeft = true;
      return abort.abort();
    }
  }
}

interface Chunk {
  choices?: { delta?: { content?: string | null }; finish_reason?: string | null }[];
}

async function readWhole(response: Response, asking: Asking, seen: Seen, abort: AbortController): Promise<void> {
  if (asking.leaves_after === 0) {
    seen.hasLeft = true;
    return abort.abort();
  }
  const body = (await response.json()) as { choices?: { message?: { content?: string | null } }[] };
  if (response.status !== 200) return;
  seen.tokens = tokensIn(body.choices?.[0]?.message?.content ?? "");
  seen.isWhole = true;
}
