/**
 * A flood of unknown keys does not slow other clients down (docs/design/keys.md, Unknown keys). bench/forged-keys.ts
 * measures by how much.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type Service, startService } from "../harness/engine.ts";
import { migratedDatabase } from "../harness/migrated-database.ts";
import { newKey, newOrganization } from "../harness/organizations.ts";
import { rawClient } from "../harness/raw-client.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { flood, forgedKey } from "./flood.ts";
import { forgedKeys } from "./forged-keys.ts";
import { headOf, metricIn, metricsOf } from "./talk.ts";

setDefaultTimeout(90_000);

let database: Awaited<ReturnType<typeof migratedDatabase>>;
let service: Service;
/** Another node on the same database. */
let other: Sluice;
beforeAll(async () => {
  database = await migratedDatabase();
  const limits = "{ failed_authentications_per_minute: 60 }";
  const env = { DATABASE_URL: database.url, SLUICE_TRUSTED_PROXIES: "127.0.0.2" };
  service = await startService({ limits, sluice: { env } });
  other = await startSluice({ config: `limits: ${limits}\n`, env, store: "pglite", dataDir: "unused" });
});
afterAll(async () => {
  await Promise.all([service.stop(), other.stop()]);
  await database.drop();
});

const metrics = async () => (await service.fetch("/metrics", { key: null })).text();
const keyed = (key: string) => service.fetch("/v1/models", { key });

test("of a flood few keys reach the directory, its answers are slow, and a real key notices nothing", async () => {
  const known = () => service.fetch("/v1/models");
  expect((await known()).status).toBe(200);
  const connections = 100;
  const attack = { url: service.url, connections, seconds: 5, honest: known, metrics };
  const { answered, looked_up, seconds, honest } = await forgedKeys(attack);
  expect(honest.failed).toBe(0);
  expect(honest.requests).toBeGreaterThan(10);
  // The most look-ups of made-up keys: the burst that an address is allowed, those that it regains as time passes, and
  // those that began at the same moment.
  expect(looked_up).toBeLessThanOrEqual(60 + Math.ceil(seconds + 5) + connections);
  expect(answered["429"]).toBeGreaterThan(0);
  // Each connection gets at most one 429 per second.
  expect(answered["429"]!).toBeLessThanOrEqual(connections * (seconds + 5));
});

test("a refusal then is 429 with retry-after, and a known key of the same address is served", async () => {
  let refused = await keyed(forgedKey());
  for (let tries = 0; refused.status !== 429 && tries < 200; tries++) refused = await keyed(forgedKey());
  expect(refused.status).toBe(429);
  expect(((await refused.json()) as { error: { code: string } }).error.code).toBe("rate_limit_exceeded");
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await service.fetch("/v1/models")).status).toBe(200);
});

test("a key made a moment ago works at once on every node, though floods use up all look-ups of unknown keys", async () => {
  const urls = [service, other].map(({ url }) => url);
  const statusOf = async (url: string, key: string) =>
    (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
  const heard = (url: string) =>
    metricsOf({ url, key: "" }).then((text) => metricIn(text, "key_revocation_propagation_seconds_count"));
  const organization = await newOrganization(service, "unlimited");
  const floods = await Promise.all(urls.map((url) => flood(url, 50)));
  try {
    const areFull = () => floods.every(({ answered }) => (answered.get("429") ?? 0) > 0);
    await until(areFull, 60_000, "unknown keys to be refused");
    const before = await Promise.all(urls.map(heard));
    const { key } = await newKey(service, organization);
    for (const [index, url] of urls.entries()) {
      await until(async () => (await heard(url)) > before[index]!, 10_000, "the node to have heard of the key");
      // Sometimes a look-up of an unknown key is allowed during the flood, and then a made-up key gets a 401 instead of
      // a 429.
      const isRefused = async () => (await statusOf(url, forgedKey())) === 429;
      await until(isRefused, 20_000, "an unknown key to be refused unseen");
      expect(await statusOf(url, key)).toBe(200);
    }
  } finally {
    for (const each of floods) each.end();
  }
});

test("clients behind a trusted proxy count one by one, and nobody else can pretend to be one of them", async () => {
  const statusOf = async (localAddress: string, client: string) => {
    const raw = await rawClient(service.url, { localAddress });
    await raw.write(headOf("GET /v1/models", "garbage", `x-forwarded-for: ${client}`));
    const answer = await raw.read();
    raw.leave();
    return answer.slice(9, 12);
  };
  const until429 = async (localAddress: string, client: (at: number) => string) => {
    for (let at = 0; at < 100; at++) if ((await statusOf(localAddress, client(at))) === "429") return at;
    return null;
  };
  expect(await until429("127.0.0.2", () => "203.0.113.5")).not.toBeNull();
  expect(await statusOf("127.0.0.2", "203.0.113.6")).toBe("401");
  // A peer that is no trusted proxy may send any address in this header, so all its requests count for the peer's own.
  expect(await until429("127.0.0.3", (at) => `203.0.113.${at}`)).not.toBeNull();
});
