/**
 * Periodic resolution of host names, on a virtual clock: when the name server is asked, which addresses are in use, and
 * that data of removed names is deleted.
 */
import { expect, test } from "bun:test";
import { identityOf, pool } from "../../../src/core/routing/choose.ts";
import { health } from "../../../src/core/routing/health.ts";
import { queues } from "../../../src/core/routing/queues.ts";
import { forgetOthers, replicas } from "../../../src/core/routing/replicas.ts";
import type { Resolving, Upstream } from "../../../src/core/upstream/target.ts";
import { names, type Resolved } from "../../../src/features/probing/names.ts";
import type { ResolvedAddresses } from "../../../src/features/probing/resolve.ts";
import { tallies } from "../../../src/features/telemetry/tallies.ts";
import { VirtualClock } from "../../core/admission/virtual-time.ts";
import { capacityOf, modelOf, routeTo, upstreamOf } from "../../core/routing/models.ts";
import { busyness } from "../../harness/busyness.ts";

const resolving: Resolving = { interval_ms: 5_000, addresses_max: 4, family: "all", servers: [] };
function upstream(more: Partial<Upstream> = {}): Upstream {
  return upstreamOf("http://engines.test:8000/v1", { name: "vllm", resolve: resolving, ...more });
}

/** The resolution of a node's host names, with a name server whose responses the test sets. */
function rig(...first: Upstream[]) {
  const clock = new VirtualClock();
  const asked: { host: string; at_ms: number }[] = [];
  const told: Resolved[] = [];
  const state = {
    upstreams: first,
    answer: (): Promise<ResolvedAddresses> => Promise.reject(new Error("nobody answers")),
  };
  const begun_ms = clock.now_ms();
  const naming = names({
    resolve(host) {
      asked.push({ host, at_ms: clock.now_ms() - begun_ms });
      return state.answer();
    },
    upstreams: () => state.upstreams,
    now_ms: () => clock.now_ms(),
    resolved(_, resolved) {
      told.push(resolved);
      known.changed();
    },
    clock,
  });
  const known = replicas(naming.addressesOf);
  const says = (...addresses: string[]) => {
    state.answer = async () => ({ addresses, ttl_ms: null, failedFamily: null });
  };
  return { clock, asked, told, state, naming, known, says };
}

test("a name is asked at once, again after each interval, and never twice at a time", async () => {
  const { clock, asked, state, says, naming } = rig(
    upstream(),
    upstream({ name: "plain", resolve: undefined as never }),
  );
  says("10.0.0.1");
  await clock.advance(12_000);
  expect(asked.map(({ host }) => host)).toEqual(["engines.test", "engines.test", "engines.test"]);
  expect(asked[2]!.at_ms).toBeGreaterThanOrEqual(10_000);
  expect(asked[2]!.at_ms).toBeLessThan(10_500);
  const late = Promise.withResolvers<ResolvedAddresses>();
  state.answer = () => late.promise;
  await clock.advance(600_000);
  expect(asked).toHaveLength(4);
  late.resolve({ addresses: ["10.0.0.2"], ttl_ms: null, failedFamily: null });
  await clock.advance(0);
  expect(naming.addressesOf(upstream())).toEqual(["10.0.0.2"]);
});

test("each address is a route, with its part of the weight; those that stay are who they were", async () => {
  const { clock, known, says } = rig(upstream());
  const model = modelOf([
    routeTo(upstream(), { weight: 3 }),
    routeTo(upstream({ name: "plain", resolve: undefined as never })),
  ]);
  says("10.0.0.1", "10.0.0.2", "fd00::1");
  await clock.advance(1);
  const before = known.routesOf(model);
  expect(before.map(({ upstream: { name, address }, weight }) => [name, address, weight])).toEqual([
    ["vllm", "10.0.0.1", 1],
    ["vllm", "10.0.0.2", 1],
    ["vllm", "fd00::1", 1],
    ["plain", undefined, 1],
  ]);
  expect(known.routesOf(model)).toBe(before);
  says("10.0.0.2", "10.0.0.3", "fd00::1");
  await clock.advance(6_000);
  const after = known.routesOf(model).map(identityOf);
  expect(before.map(identityOf).filter((identity) => !after.includes(identity))).toEqual([identityOf(before[0]!)]);
  expect(new Set(after).size).toBe(4);
});

test("a model without such names has the routes that it was given, the very list", () => {
  const { known } = rig();
  const model = modelOf([routeTo(upstream({ resolve: undefined as never }))]);
  expect(known.routesOf(model)).toBe(model.routes);
});

test("a name of which no address is known is a route only where there is no other", async () => {
  const { clock, known, asked } = rig(upstream());
  const spare = routeTo(upstream({ name: "plain", resolve: undefined as never }), { priority: 1 });
  await clock.advance(4_500);
  expect(asked.length).toBeGreaterThanOrEqual(4);
  expect(known.routesOf(modelOf([routeTo(upstream()), spare]))).toEqual([spare]);
  const [sole] = known.routesOf(modelOf([routeTo(upstream())]));
  expect(sole!.upstream.address).toBeNull();
  expect(known.allOf(modelOf([routeTo(upstream()), spare]))).toHaveLength(2);
});

test("a reload keeps the addresses of a name that stays, and forgets one that goes", async () => {
  const { clock, naming, state, says, asked } = rig(upstream());
  says("10.0.0.1");
  await clock.advance(1);
  const slower = upstream({ resolve: { ...resolving, interval_ms: 60_000 }, apiKey: "k" });
  state.upstreams = [slower];
  state.answer = () => Promise.reject(new Error("down"));
  await naming.prepare([slower]);
  expect(asked).toHaveLength(1);
  expect(naming.addressesOf(slower)).toEqual(["10.0.0.1"]);
  state.upstreams = [];
  await clock.advance(120_000);
  state.upstreams = [slower];
  await clock.advance(200);
  expect(naming.addressesOf(slower)).toEqual([]);
});

test("a reload waits for new names, and what it has prepared is there when it comes into force", async () => {
  const { clock, naming, state } = rig();
  state.answer = async () => {
    await Bun.sleep(50);
    return { addresses: ["10.0.0.1"], ttl_ms: null, failedFamily: null };
  };
  await naming.prepare([upstream()]);
  expect(naming.addressesOf(upstream())).toEqual(["10.0.0.1"]);
  await clock.advance(1_000);
  expect(naming.addressesOf(upstream())).toEqual(["10.0.0.1"]);
  state.upstreams = [upstream()];
  expect(naming.addressesOf(upstream())).toEqual(["10.0.0.1"]);
  state.answer = () => new Promise(() => {});
  const began_ms = performance.now();
  await naming.prepare([upstream({ name: "other" })]);
  expect(performance.now() - began_ms).toBeLessThan(10_000 * busyness());
});

test("after 100,000 changes nothing is known of addresses that are gone", async () => {
  const from = upstream({ capacity: capacityOf({ concurrent_max: 4 }) });
  const model = modelOf([routeTo(from)]);
  let address = "";
  const known = replicas(() => [address, "10.255.255.255"]);
  const parts = { health: health(), pool: pool(), queues: queues(() => 0), tallies: tallies() };
  const visit = { key: () => 7, tokens: 100 };
  const claim = { organizationId: "o", tokens: 100, share: { weight: 1, priority: 0 } };
  const change = (count: number) => {
    address = `10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`;
    known.changed();
    forgetOthers(known.of([from]), Object.values(parts));
    for (const route of known.routesOf(model)) {
      const { release } = parts.queues.enter(route, claim);
      parts.pool.begun(route, visit, true, count);
      parts.health.begun(route, count);
      parts.pool.ended(route, visit);
      release();
      parts.health.ended(route, { kind: "failed" }, count, count);
      parts.health.shown(route, known.routesOf(model), 10, count, count);
      parts.health.ended(route, { kind: "failed" }, count, count);
      parts.tallies.ended(route.upstream, "failed");
    }
  };
  const heap_bytes = () => {
    Bun.gc(true);
    return process.memoryUsage().heapUsed;
  };
  for (let count = 0; count < 2_000; count++) change(count);
  const before = heap_bytes();
  // The growth is measured after few and after many changes: data that were never freed would make each change slower.
  for (const [from, to] of [
    [2_000, 5_000],
    [5_000, 102_000],
  ] as const) {
    for (let count = from; count < to; count++) change(count);
    expect(parts.tallies.read()).toHaveLength(2);
    // The bound is less than 43 bytes per change, which is less than an entry of a map. It cannot be much lower,
    // because other test files in this process leave over 2 MiB.
    expect(heap_bytes() - before).toBeLessThan(4 * 1024 * 1024);
  }
}, 60_000);
