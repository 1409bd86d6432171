// Sends requests at a steady rate, whatever their outcome.

import type { Node } from "./site.ts";

export interface Asking {
  model: string;
  /** Directives that tell the simulator how to respond. */
  directives: string;
  stream?: boolean;
  /** Whether each request has an idempotency key of its own, so that its response is stored. */
  isKept?: boolean;
  /** How long the client waits for the answer; absent: for ever. */
  patience_ms?: number;
}

export async function asking({ url, key }: Pick<Node, "url" | "key">, what: Asking): Promise<void> {
  const { model, directives, stream = false, isKept = false, patience_ms } = what;
  const messages = [{ role: "user", content: `Say it. [simulator: ${directives}]` }];
  const body = JSON.stringify({ model, stream, messages });
  const headers = {
    authorization: `Bearer ${key}`,
    "content-type": "application/json",
    ...(isKept && { "idempotency-key": crypto.randomUUID() }),
  };
  try {
    const signal = patience_ms === undefined ? null : AbortSignal.timeout(patience_ms);
    await (await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body, signal })).text();
  } catch {
    // The request may fail because the node is down, or the client gives up: that is part of the incident.
  }
}

export function trickle(node: Pick<Node, "url" | "key">, what: Asking, a_second: number): { stop(): Promise<void> } {
  const open = new Set<Promise<void>>();
  const timer = setInterval(() => {
    const one = asking(node, what).finally(() => open.delete(one));
    open.add(one);
  }, 1000 / a_second);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.race([Promise.all(open), Bun.sleep(5000)]);
    },
  };
}
