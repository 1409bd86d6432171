// What attackers and honest clients alike ask of a node.

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

/** As Prometheus reads them. */
export async function metricsOf({ url }: Whom): Promise<string> {
  return (await fetch(`${url}/metrics`)).text();
}

/** The sum over all labels; 0 where there is none. */
export function metricIn(text: string, name: string): number {
  const lines = text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"));
  return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
}
