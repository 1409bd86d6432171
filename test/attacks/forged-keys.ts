// A flood of made-up keys, each with a valid checksum, while somebody uses a real key: measures how the flood was answered,
// how many look-ups the directory got, and whether the honest caller noticed anything.

import { flood } from "./flood.ts";
import { metricIn } from "./talk.ts";

export interface ForgedKeys {
  connections: number;
  /** The bytes that the attacker wrote. */
  bytes: number;
  /** The numbers of answers to the flood, by status. */
  answered: Record<string, number>;
  /** The number of made-up keys that reached the directory. */
  looked_up: number;
  seconds: number;
  honest: { requests: number; failed: number; p50_ms: number };
}

export async function forgedKeys(attack: {
  url: string;
  connections: number;
  seconds: number;
  /** Sends one request with a real key. */
  honest(): Promise<Response>;
  /** Reads the service's metrics, in the format of Prometheus. */
  metrics(): Promise<string>;
}): Promise<ForgedKeys> {
  const { connections } = attack;
  const lookedUp = async () => metricIn(await attack.metrics(), "authentication_failures_total", "invalid_api_key");
  const before = await lookedUp();
  const flooding = await flood(attack.url, connections);
  const started = performance.now();
  const latencies: number[] = [];
  let failed = 0;
  while (performance.now() - started < attack.seconds * 1000) {
    const asked = performance.now();
    const response = await attack.honest();
    await response.text();
    latencies.push(performance.now() - asked);
    if (response.status !== 200) failed++;
    await Bun.sleep(20);
  }
  const seconds = (performance.now() - started) / 1000;
  const bytes = flooding.bytes();
  const answered = Object.fromEntries(flooding.answered);
  const looked_up = (await lookedUp()) - before;
  flooding.end();
  const p50_ms = latencies.sort((one, other) => one - other)[Math.floor(latencies.length / 2)] ?? 0;
  return { connections, bytes, answered, looked_up, seconds, honest: { requests: latencies.length, failed, p50_ms } };
}
