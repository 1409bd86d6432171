/** The state that a node keeps about engines behind one host name, when addresses change and after reloads. */
import { afterEach, expect, test } from "bun:test";
import type { Configuration } from "../../src/config/configuration.ts";
import type { EngineSlots } from "../../src/core/store/engine-slots.ts";
import type { ResolvedAddresses } from "../../src/features/probing/resolve.ts";
import { prometheusMetrics } from "../../src/features/telemetry/metrics.ts";
import { type Engines, engines } from "../../src/node/engines.ts";
import { configured } from "../config/reading.ts";
import { until } from "../harness/until.ts";

const ending: AsyncDisposableStack[] = [];
afterEach(async () => {
  for (const one of ending.splice(0)) await one.disposeAsync();
});

function text(resolve: string, more = ""): Configuration {
  return configured(`upstreams: { vllm: { url: "http://engines.test:8000/v1", resolve: ${resolve} }${more} }
metering: { currency: USD }
models:
  - id: acme/m
    created: 1790000000
    context_window: 8192
    prices: { input: 0.001, output: 0.002 }
    routes: [{ upstream: vllm, model: m }${more ? ", { upstream: more, model: m, priority: 1 }" : ""}]
`);
}

async function node(first: Configuration, answer: () => Promise<ResolvedAddresses>, slots?: EngineSlots) {
  const stack = new AsyncDisposableStack();
  ending.push(stack);
  const events: { event: string; fields: Record<string, unknown> }[] = [];
  const state = { configuration: first, resolutions: 0 };
  const known = stack.use(
    engines({
      configuration: () => state.configuration,
      log: {
        request() {},
        event: (_, event, fields = {}) => void events.push({ event, fields }),
        flush() {},
      },
      resolve: answer,
      ...(slots ? { slots } : {}),
      resolved() {
        state.resolutions += 1;
      },
    }),
  );
  await known.names.prepare(first.upstreams);
  return { known, state, events };
}

test("metrics count what models share at an engine, or in its queue, once", async () => {
  const configuration = configured(`upstreams: { vllm: { url: "http://engines.test:8000/v1", concurrent_max: 1 } }
metering: { currency: USD }
models:
${["one", "two", "three"]
  .map(
    (id) => `  - id: acme/${id}
    created: 1790000000
    context_window: 8192
    prices: { input: 0.001, output: 0.002 }
    routes: [{ upstream: vllm, model: ${id === "three" ? "other" : "same"} }]
`,
  )
  .join("")}`);
  const { known } = await node(configuration, async () => to());
  const routes = [...configuration.catalog.models.values()].map((model) => model.routes[0]!);
  const claim = { organizationId: "org", tokens: 100, share: { weight: 1, priority: 0 } };
  const slot = known.queues.enter(routes[0]!, claim);
  known.pool.begun(routes[0]!, { key: () => 7, tokens: 100 }, false, performance.now());
  const waiting = known.queues.wait([routes[2]!], claim);
  const metrics = prometheusMetrics({ version: "1", isPrivate: true, organizations_max: () => 0 });
  metrics.routes(known.routes, known.loads);
  const sum = async (name: string) =>
    String(await metrics.render("prometheus"))
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`))
      .reduce((total, line) => total + Number(line.split(" ").at(-1)), 0);
  expect(await sum("upstream_requests_in_flight")).toBe(1);
  expect(await sum("upstream_tokens_in_flight")).toBe(100);
  expect(await sum("upstream_queue_length")).toBe(1);
  expect(await sum("upstream_routes")).toBe(3);
  waiting.giveUp();
  slot.release();
});

const to = (...addresses: string[]): ResolvedAddresses => ({ addresses, ttl_ms: null, failedFamily: null });
const routesOf = ({ replicas }: Engines, { catalog }: Configuration) =>
  replicas.routesOf(catalog.models.get("acme/m")!);

test("a reload keeps the breakers and the load of addresses that stay; a change of addresses forgets those that go, but not what still runs there", async () => {
  let answer = to("10.0.0.1", "10.0.0.2");
  const { known, state, events } = await node(text("{ interval_ms: 100 }"), async () => answer);
  const visit = { key: () => 7, tokens: 100 };
  const [first, second] = routesOf(known, state.configuration);
  for (const route of [first!, second!])
    for (let count = 0; count < 3; count++) known.health.ended(route, { kind: "failed" }, count, performance.now());
  for (const route of [first!, second!]) known.pool.begun(route, visit, true, 0);
  const next = text("{ interval_ms: 200 }", ', more: { url: "http://10.1.1.1:8000/v1" }');
  await known.names.prepare(next.upstreams);
  state.configuration = next;
  expect(known.routes()).toMatchObject([
    { replica: "10.0.0.1", state: "open", requests: 1, tokens: 100 },
    { replica: "10.0.0.2", state: "open", requests: 1, tokens: 100 },
    { upstream: "more", state: "closed" },
  ]);
  answer = to("10.0.0.2", "10.0.0.3");
  await until(() => known.routes()[1]?.replica === "10.0.0.3", 5_000, "the change");
  answer = to("10.0.0.1", "10.0.0.2");
  await until(() => known.routes()[0]?.replica === "10.0.0.1", 5_000, "the change back");
  expect(known.routes()).toMatchObject([
    { state: "closed", requests: 1, tokens: 100 },
    { state: "open", requests: 1, tokens: 100 },
    { upstream: "more", state: "closed" },
  ]);
  known.pool.ended(first!, visit);
  expect(known.routes()[0]).toMatchObject({ requests: 0, tokens: 0 });
  expect(events.filter(({ event }) => event === "upstream_resolved").map(({ fields }) => fields)).toEqual([
    { upstream: "vllm", addresses: 2, added: ["10.0.0.1", "10.0.0.2"], lost: [] },
    { upstream: "vllm", addresses: 2, added: ["10.0.0.3"], lost: ["10.0.0.1"] },
    { upstream: "vllm", addresses: 2, added: ["10.0.0.1"], lost: ["10.0.0.3"] },
  ]);
});

test("too many addresses are logged once, with what to do, and a long list is cut", async () => {
  const many = Array.from({ length: 300 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
  const { known, state, events } = await node(text("{ interval_ms: 100, addresses_max: 20 }"), async () => to(...many));
  await until(() => state.resolutions > 3, 5_000, "some more answers");
  expect(routesOf(known, state.configuration)).toHaveLength(20);
  expect(known.addresses()).toEqual([["vllm", 20]]);
  const told = events.filter(({ event }) => event === "upstream_unresolved");
  expect(told).toHaveLength(1);
  expect(told[0]!.fields).toMatchObject({
    problem: "many",
    addresses: 20,
    next: expect.stringContaining("addresses_max"),
  });
  const { added } = events.find(({ event }) => event === "upstream_resolved")!.fields as { added: string[] };
  expect(added).toHaveLength(17);
  expect(added.at(-1)).toBe("and 4 more");
});

test("a limit that the fleet shares is asked for at each address before any request comes", async () => {
  const asked = new Set<string>();
  const slots: EngineSlots = {
    async exchange(engine, { limits }) {
      asked.add(engine.split(" ").at(-1)!);
      return { held: limits, target: limits, processes: 1, isShort: false };
    },
    async leave() {},
  };
  let answer = to("10.0.0.1", "10.0.0.2");
  const shared = text("{ interval_ms: 100 }, concurrent_max: 8, scope: fleet");
  await node(shared, async () => answer, slots);
  await until(() => asked.size === 2, 5_000, "both engines");
  answer = to("10.0.0.2", "10.0.0.3");
  await until(() => asked.size === 3, 5_000, "the new one");
  expect([...asked].sort()).toEqual(["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
});

test("an engine that a reload takes away gives back its part of the fleet's limit, once nothing runs there", async () => {
  const left: string[] = [];
  const slots: EngineSlots = {
    async exchange(_, { limits }) {
      return { held: limits, target: limits, processes: 1, isShort: false };
    },
    async leave(engine) {
      left.push(engine);
    },
  };
  const both = text(
    "{ interval_ms: 100 }",
    ', more: { url: "http://10.1.1.1:8000/v1", concurrent_max: 8, scope: fleet }',
  );
  const { known, state } = await node(both, async () => to("10.0.0.1"), slots);
  const route = routesOf(known, both).find(({ upstream }) => upstream.name === "more")!;
  const claim = { organizationId: "org", tokens: 1, share: { weight: 1, priority: 0 } };
  await until(() => known.queues.open([route], claim).length === 1, 5_000, "a place there");
  const slot = known.queues.enter(route, claim);
  for (let count = 0; count < 3; count++) known.health.ended(route, { kind: "failed" }, count, performance.now());
  state.configuration = text("{ interval_ms: 100 }");
  await until(() => known.health.stateOf(route, performance.now()) === "closed", 5_000, "its breaker to be forgotten");
  expect(left).toEqual([]);
  slot.release();
  await until(() => left.length === 1, 5_000, "its part to be given back");
  expect(left[0]).toContain("10.1.1.1");
});
