// Requests that attackers and honest clients alike send to a node.

import type { Target } from "./attack.ts";

type Whom = Pick<Target, "url" | "key">;

/** A short request, with further fields. */
export function chatWith(
  { url, key }: Whom,
  fields: { model: string; stream?: boolean; messages?: object[] },
): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ max_tokens: 600, messages: [{ role: "user", content: "Hello" }], ...fields }),
    signal: AbortSignal.timeout(60_000),
  });
}

/** The node's metrics, in the format of Prometheus. */
export async function metricsOf({ url }: Whom): Promise<string> {
  return (await fetch(`${url}/metrics`)).text();
}

/** The sum of a metric over all labels; 0 if the metric is missing. */
export function metricIn(text: string, name: string): number {
  const lines = text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"));
  return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
}
