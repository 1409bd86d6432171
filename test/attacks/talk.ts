// Sends the requests that attackers and honest clients have in common.

import type { Target } from "./attack.ts";

type Whom = Pick<Target, "url" | "key">;

/** Sends a short chat request, with additional fields and headers. */
export function chatWith(
  { url, key }: Whom,
  fields: { model: string; stream?: boolean; messages?: object[] },
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ max_tokens: 600, messages: [{ role: "user", content: "Hello" }], ...fields }),
    signal: AbortSignal.timeout(60_000),
  });
}

/** Sends requests, `at_once` at a time, reads their responses to the end, and returns the statuses. */
export async function statusesOf(requests: number, at_once: number, ask: () => Promise<Response>): Promise<string[]> {
  const statuses: string[] = [];
  let left = requests;
  const client = async () => {
    while (left-- > 0) {
      const response = await ask();
      await response.text();
      statuses.push(String(response.status));
    }
  };
  await Promise.all(Array.from({ length: at_once }, client));
  return statuses;
}

/** The head of an HTTP request, as sent on a socket. `line` is its method and path: `GET /livez`. */
export function headOf(line: string, key: string | null, ...fields: string[]): string {
  const credential = key === null ? [] : [`authorization: Bearer ${key}`];
  return `${line} HTTP/1.1\r\n${["host: localhost", ...credential, ...fields].join("\r\n")}\r\n\r\n`;
}

/** A Chat Completions request, as sent on a socket. */
export function chatOf(key: string | null, body: string, ...fields: string[]): string {
  const size = `content-length: ${body.length}`;
  return headOf("POST /v1/chat/completions", key, "content-type: application/json", size, ...fields) + body;
}

/**
 * Sends GET requests one after another, until `end` is called. A response with a status other than 200 counts as
 * failed.
 */
export function probing(url: string, pause_ms: number) {
  const seen = { slowest_ms: 0, failed: 0 };
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const asked = performance.now();
      const response = await fetch(url, { signal: AbortSignal.timeout(30_000) }).catch(() => null);
      await response?.text().catch(() => {});
      if (response?.status !== 200) seen.failed++;
      seen.slowest_ms = Math.max(seen.slowest_ms, performance.now() - asked);
      await Bun.sleep(pause_ms);
    }
  })();
  return {
    async end() {
      isOver = true;
      await asking;
      return seen;
    },
  };
}

/** The node's metrics, in the Prometheus format. */
export async function metricsOf({ url }: Whom): Promise<string> {
  return (await fetch(`${url}/metrics`)).text();
}

/** The sum of a metric over all labels, or over those with this label; 0 if the metric is missing. */
export function metricIn(text: string, name: string, label = ""): number {
  const labels = label === "" ? "(?:\\{[^}]*\\})?" : `\\{[^}]*${label}[^}]*\\}`;
  const lines = text.matchAll(new RegExp(`^${name}${labels} (\\S+)$`, "gm"));
  return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
}
