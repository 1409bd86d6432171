/**
 * Unknown keys cost others nothing (docs/design/keys.md, Unknown keys). bench/forged-keys.ts measures how long others
 * wait.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type Service, startService } from "../harness/engine.ts";
import { rawClient } from "../harness/raw-client.ts";
import { forgedKey } from "./flood.ts";
import { forgedKeys } from "./forged-keys.ts";
import { headOf } from "./talk.ts";

setDefaultTimeout(90_000);

let service: Service;
beforeAll(async () => {
  service = await startService({
    limits: "{ failed_authentications_per_minute: 60 }",
    sluice: { env: { SLUICE_TRUSTED_PROXIES: "127.0.0.2" } },
  });
});
afterAll(async () => {
  await service.stop();
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
  // The most look-ups of made-up keys: the burst that an address may have, those that it may have again as time passes,
  // and those that began at the same moment.
  expect(looked_up).toBeLessThanOrEqual(60 + Math.ceil(seconds + 5) + connections);
  expect(answered["429"]).toBeGreaterThan(0);
  // Each connection gets at most one answer in a second.
  expect(answered["429"]!).toBeLessThanOrEqual(connections * (seconds + 5));
});

test("a refusal then is 429 with retry-after, a known key of the same address is served, and so is one made a moment ago", async () => {
  let refused = await keyed(forgedKey());
  for (let tries = 0; refused.status !== 429 && tries < 200; tries++) refused = await keyed(forgedKey());
  expect(refused.status).toBe(429);
  expect(((await refused.json()) as { error: { code: string } }).error.code).toBe("rate_limit_exceeded");
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await service.fetch("/v1/models")).status).toBe(200);
  const slug = "fresh";
  await service.json("org", "create", slug, "--plan", "unlimited");
  const { key } = await service.json<{ key: string }>("key", "create", "--org", slug, "--name", "test");
  expect((await keyed(key)).status).toBe(200);
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
  // From an untrusted peer the header is only a claim: all its requests count for the peer's address.
  expect(await until429("127.0.0.3", (at) => `203.0.113.${at}`)).not.toBeNull();
});
