/** Engines that say how busy they are: a crowded one gets no new requests while another of the model is not. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { bodyOf, seen } from "./callers.ts";
import { configOf } from "./config.ts";
import { type Engine, startEngine, words } from "./engine.ts";

const engines = [startEngine(), startEngine()] as [Engine, Engine];
let sluice: Sluice;

beforeAll(async () => {
  const [one, other] = engines;
  sluice = await startSluice({
    config: configOf(
      { "canary-many": { url: one.url, replicas: [other.url], load: { interval_ms: 100 } } },
      { many: ["canary-many"] },
    ),
    operatorsWords: ["canary-many"],
  });
}, 60_000);
afterAll(async () => {
  await sluice.stop();
  await Promise.all(engines.map((engine) => engine.stop()));
});

const asks = async (user: string) => {
  const more = { messages: [{ role: "user", content: user }] };
  return seen(await sluice.post("/v1/chat/completions", bodyOf("chat", "acme/many", true, more)));
};
const crowded = async () =>
  Number(
    /^upstream_routes\{[^}]*state="crowded"\} (\d)/m.exec(await (await sluice.fetch("/metrics")).text())?.[1] ?? 0,
  );

test("new requests go to the one that is not crowded, and to both where both are, or none", async () => {
  const [one, other] = engines;
  one.waiting = 9;
  await until(async () => (await crowded()) === 1, 10_000, "one to be known as crowded");
  for (let count = 0; count < 12; count++) expect((await asks(`first ${count}`)).text).toBe(words);
  expect([one.asked.length, other.asked.length]).toEqual([0, 12]);
  other.waiting = 9;
  await until(async () => (await crowded()) === 2, 10_000, "both to be known as crowded");
  for (let count = 0; count < 16; count++) expect((await asks(`second ${count}`)).text).toBe(words);
  expect(one.asked.length).toBeGreaterThan(0);
  [one.waiting, other.waiting] = [0, 0];
  await until(async () => (await crowded()) === 0, 10_000, "none to be crowded");
  expect((await (await sluice.fetch("/readyz?verbose")).json()) as object).toMatchObject({ checks: { routes: "ok" } });
});
