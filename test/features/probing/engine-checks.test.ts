/**
 * Health checks of engines, and reading their load: which responses count as healthy, and how often an engine is
 * checked.
 */
import { expect, test } from "bun:test";
import type { Get } from "../../../src/core/upstream/http1/client.ts";
import type { Reply } from "../../../src/core/upstream/http1/exchange.ts";
import type { Upstream } from "../../../src/core/upstream/target.ts";
import { asked } from "../../../src/features/probing/asked.ts";
import { checks } from "../../../src/features/probing/checks.ts";
import { loads } from "../../../src/features/probing/loads.ts";
import { VirtualClock } from "../../core/admission/virtual-time.ts";
import { upstreamOf } from "../../core/routing/models.ts";
import { until } from "../../harness/until.ts";

const tls = { ca: "an authority", certificate: null };
const engine = (more: Partial<Upstream>) => upstreamOf("https://engine.test/v1", more);

function client(status: number, body = "") {
  const asked: Get[] = [];
  const pieces = [new TextEncoder().encode(body)];
  const reply = { status, read: async () => (pieces.length > 0 ? pieces.splice(0) : null), drop() {} };
  const get = async (one: Get) => {
    asked.push(one);
    return reply as unknown as Reply;
  };
  return { asked, get };
}

test.each([
  [200, true],
  [204, true],
  [299, true],
  [300, false],
  [404, false],
  [503, false],
])("an engine that answers its checks with %p is up: %p", async (status, isUp) => {
  const { asked, get } = client(status);
  const told: boolean[] = [];
  const upstream = engine({ check: { path: "/health", interval_ms: 1 }, tls });
  const checking = checks({
    client: { get },
    health: { checked: (_, isWell) => void told.push(isWell) },
    upstreams: () => [upstream],
    now_ms: () => performance.now(),
    turned() {},
  });
  try {
    await until(() => asked.length > 3);
    expect(told).toEqual(isUp ? [] : [false]);
    expect(asked[0]).toMatchObject({ url: "https://engine.test/health", tls });
  } finally {
    await checking.stop();
  }
});

test.each([
  ["openai-chat", { authorization: "Bearer k" }],
  ["anthropic-messages", { "x-api-key": "k" }],
] as const)(
  "a path that is protected is asked with the key, as %s sends it, beside own headers",
  async (protocol, key) => {
    const { asked: seen, get } = client(200);
    await asked({ get }, engine({ protocol, apiKey: "k", headers: { "x-own": "1" } }), "/v1/models", 1_000);
    expect(seen[0]!.headers).toMatchObject({ ...key, "x-own": "1" });
    const replaced = engine({ protocol, apiKey: "k", headers: { authorization: "Basic b", "x-api-key": "b" } });
    await asked({ get }, replaced, "/v1/models", 1_000);
    expect(seen[1]!.headers).toMatchObject({ authorization: "Basic b", "x-api-key": "b" });
  },
);

test("a crowded engine stays crowded until it is read again, or is no longer configured", async () => {
  const { asked, get } = client(200, "vllm:num_requests_waiting 9\n");
  const told: boolean[] = [];
  let upstreams = [engine({ load: { path: "/metrics", interval_ms: 1_000, waiting_max: 4 }, tls })];
  let looks = 0;
  const reading = loads({
    client: { get },
    health: { crowded: (_, isCrowded) => void told.push(isCrowded) },
    upstreams() {
      looks += 1;
      return upstreams;
    },
    now_ms: () => 0,
  });
  try {
    await until(() => looks > 4);
    expect(told).toEqual([true]);
    expect(asked).toMatchObject([{ url: "https://engine.test/metrics", tls }]);
    upstreams = [];
    await until(() => told.length > 1);
    expect(told).toEqual([true, false]);
  } finally {
    await reading.stop();
  }
});

test("where nobody is to be asked, it is looked for once a second, and within a second after somebody is", async () => {
  const clock = new VirtualClock();
  const { asked, get } = client(200);
  let looks = 0;
  let all: Upstream[] = [engine({})];
  const parts = {
    client: { get },
    health: { checked() {}, crowded() {} },
    upstreams: () => {
      looks += 1;
      return all;
    },
    now_ms: () => clock.now_ms(),
    clock,
  };
  const both = [checks({ ...parts, turned() {} }), loads(parts)];
  await clock.advance(10_000);
  expect(looks / both.length).toBe(11);
  const [check, load] = [
    { path: "/health", interval_ms: 500 },
    { path: "/metrics", interval_ms: 500, waiting_max: 5 },
  ];
  all = [engine({ check, load })];
  await clock.advance(1_000);
  const paths = () => asked.map(({ url }) => new URL(url).pathname).sort();
  expect(paths()).toEqual(["/health", "/metrics"]);
  await clock.advance(2_000);
  expect(paths()).toEqual([..."12345"].flatMap(() => ["/health"]).concat([..."12345"].flatMap(() => ["/metrics"])));
  for (const one of both) await one.stop();
});
