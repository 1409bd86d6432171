/**
 * Engines that get no new requests while other engines of the model can serve them: engines that an operator drains,
 * which takes effect within a second and lasts until the drain ends; and engines that report that they are busy.
 * Running requests there are completed.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Drain } from "../../src/admin/management/upstreams.ts";
import { migratedDatabase } from "../harness/migrated-database.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { bodyOf, seen } from "./callers.ts";
import { configOf } from "./config.ts";
import { type Engine, startEngine, words } from "./engine.ts";

setDefaultTimeout(60_000);

const engines = Array.from({ length: 4 }, () => startEngine());
const [one, two, busy, calm] = engines as [Engine, Engine, Engine, Engine];
const [first, second, many] = ["canary-first", "canary-second", "canary-many"] as const;
let database: Awaited<ReturnType<typeof migratedDatabase>>;
let sluice: Sluice;

beforeAll(async () => {
  database = await migratedDatabase();
  const upstreams = {
    [first]: { url: one.url },
    [second]: { url: two.url },
    [many]: { url: busy.url, replicas: [calm.url], load: { interval_ms: 100 } },
  };
  sluice = await startSluice({
    config: configOf(upstreams, { spread: [first, second], many: [many] }),
    env: { DATABASE_URL: database.url },
    store: "pglite",
    operatorsWords: Object.keys(upstreams),
  });
});
afterAll(async () => {
  await sluice.stop();
  await Promise.all(engines.map((engine) => engine.stop()));
  await database.drop();
});

const ask = (model = "spread") => {
  const messages = [{ role: "user", content: crypto.randomUUID() }];
  return sluice.post("/v1/chat/completions", bodyOf("chat", `acme/${model}`, true, { messages }));
};
const drained = () => sluice.json<Drain[]>("upstream", "drained");
/**
 * How many routes of the model are in this state. The routes' engines are not compared, because not every port shows
 * their names.
 */
async function routesIn(state: "drained" | "crowded", model: string): Promise<number> {
  const metrics = await (await sluice.fetch("/metrics")).text();
  const line = new RegExp(`^upstream_routes\\{model="acme/${model}",.*state="${state}"\\} (\\d)`, "m");
  return Number(line.exec(metrics)?.[1] ?? 0);
}
const areDrained = (routes: number, deadline_ms?: number) =>
  until(async () => (await routesIn("drained", "spread")) === routes, deadline_ms);

test("a drained engine gets no new requests within a second, and again once it is resumed; nothing fails", async () => {
  expect((await sluice.cli("upstream", "drain", first)).stdout).toContain(first);
  await areDrained(1, 1_000);
  const before = one.asked.length;
  for (let count = 0; count < 20; count++) expect((await seen(await ask())).text).toBe(words);
  expect(one.asked).toHaveLength(before);
  expect(await drained()).toMatchObject([{ upstream: first, replica: null, until: null }]);

  await sluice.json("upstream", "resume", first);
  await areDrained(0, 1_000);
  await until(async () => {
    await ask();
    return one.asked.length > before;
  });
  const log = await sluice.json<{ action: string; subject: string }[]>("audit", "list");
  const acts = log.filter(({ subject }) => subject === first).map(({ action }) => action);
  expect(acts.sort()).toEqual(["upstream.drain", "upstream.resume"]);
});

test("a model whose engines are all drained is refused with the time to come back, until the drain's end", async () => {
  const at = new Date(Date.now() + 10_000).toISOString();
  for (const name of [first, second]) await sluice.json("upstream", "drain", name, "--until", at);
  await areDrained(2);
  const refused = await ask();
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toBe("30");
  expect(await refused.json()).toMatchObject({ error: { code: "overloaded" } });
  await until(async () => (await ask()).status === 200, 15_000);
  expect(await drained()).toEqual([]);
});

test("a request that runs at an engine when it is drained is finished there", async () => {
  const before = one.asked.length;
  for (const engine of [one, two]) engine.delay_ms = 20_000;
  const running = ask();
  await until(() => one.inFlight + two.inFlight > 0);
  const [engine, name] = one.asked.length > before ? [one, first] : [two, second];
  await sluice.json("upstream", "drain", name);
  await areDrained(1);
  for (const engine of [one, two]) engine.delay_ms = 20;
  engine.hurry();
  expect((await seen(await running)).text).toBe(words);
  await sluice.json("upstream", "resume", name);
});

test("an engine that there is not, one that is not drained, and a time that is past are refused in words", async () => {
  const says = (...typed: string[]) => expect(sluice.json("upstream", ...typed)).rejects;
  await says("drain", "gpu-9").toThrow(`The configuration has: ${first}, `);
  await says("resume", first).toThrow("sluice upstream drained");
  await says("drain", first, "--until", "2020-01-01").toThrow("is past");
  expect(await drained()).toEqual([]);
});

test("a drain is known to a node that starts later", async () => {
  await sluice.json("upstream", "drain", first);
  const config = configOf({ [first]: { url: one.url } }, { alone: [first] });
  const env = { DATABASE_URL: database.url };
  const later = await startSluice({ config, env, store: "pglite", operatorsWords: [first], dataDir: "unused" });
  const askLater = () => later.post("/v1/chat/completions", bodyOf("chat", "acme/alone", true), { key: sluice.key });
  expect(await (await askLater()).json()).toMatchObject({ error: { code: "overloaded" } });
  await sluice.json("upstream", "resume", first);
  await until(async () => (await askLater()).status === 200);
  await later.stop();
});

test("new requests go to the engine that is not crowded, and to both where both are, or none", async () => {
  const areCrowded = (routes: number) =>
    until(async () => (await routesIn("crowded", "many")) === routes, 10_000, `${routes} to be known as crowded`);
  const askMany = async (times: number) => {
    for (let count = 0; count < times; count++) expect((await seen(await ask("many"))).text).toBe(words);
  };
  busy.waiting = 9;
  await areCrowded(1);
  await askMany(12);
  expect([busy.asked.length, calm.asked.length]).toEqual([0, 12]);
  calm.waiting = 9;
  await areCrowded(2);
  await askMany(16);
  expect(busy.asked.length).toBeGreaterThan(0);
  [busy.waiting, calm.waiting] = [0, 0];
  await areCrowded(0);
  expect((await (await sluice.fetch("/readyz?verbose")).json()) as object).toMatchObject({ checks: { routes: "ok" } });
});
