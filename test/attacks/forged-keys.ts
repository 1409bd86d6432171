// Sends a flood of made-up keys, each with a valid checksum, while an honest client uses a real key. Measures the
// responses to the flood, how many keys were looked up in the database, and whether the honest client was affected.

import { flood } from "./flood.ts";
import { metricIn } from "./talk.ts";

export interface ForgedKeys {
  /** The bytes that the attacker wrote. */
  bytes: number;
  /** The number of responses to the flood, by status. */
  answered: Record<string, number>;
  /** The number of made-up keys that were looked up in the database. */
  looked_up: number;
  seconds: number;
  honest: { requests: number; failed: number };
}

export async function forgedKeys(attack: {
  url: string;
  connections: number;
  seconds: number;
  /** Sends one request with a real key. */
  honest(): Promise<Response>;
  /** Reads the service's metrics, in the Prometheus format. */
  metrics(): Promise<string>;
}): Promise<ForgedKeys> {
  const lookedUp = async () => metricIn(await attack.metrics(), "authentication_failures_total", "invalid_api_key");
  const before = await lookedUp();
  const flooding = await flood(attack.url, attack.connections);
  const started = performance.now();
  const honest = { requests: 0, failed: 0 };
  while (performance.now() - started < attack.seconds * 1000) {
    const response = await attack.honest();
    await response.text();
    honest.requests++;
    if (response.status !== 200) honest.failed++;
    await Bun.sleep(20);
  }
  const seconds = (performance.now() - started) / 1000;
  const bytes = flooding.bytes();
  const answered = Object.fromEntries(flooding.answered);
  const looked_up = (await lookedUp()) - before;
  flooding.end();
  return { bytes, answered, looked_up, seconds, honest };
}
