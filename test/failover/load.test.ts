/** Engines that die and come back while requests run, over real sockets. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { probation_ms_max } from "../../src/core/routing/health.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { bodyOf, type Seen, seen } from "./callers.ts";
import { configOf } from "./config.ts";
import { type Engine, startEngine, words } from "./engine.ts";

const engines: Engine[] = Array.from({ length: 3 }, startEngine);
const [first, second, third] = engines as [Engine, Engine, Engine];
let sluice: Sluice;

beforeAll(async () => {
  const upstreams = {
    "canary-first": { url: first.url },
    "canary-second": { url: second.url },
    "canary-third": { url: third.url },
  };
  const models = {
    dying: ["canary-first", "canary-second"],
    sick: ["canary-third", "canary-second"],
  };
  sluice = await startSluice({ config: configOf(upstreams, models), operatorsWords: Object.keys(upstreams) });
}, 60_000);
afterAll(async () => {
  await sluice.stop();
  await Promise.all(engines.map((engine) => engine.stop()));
});

async function asks(model: string, user: string): Promise<Seen> {
  const more = { messages: [{ role: "user", content: user }] };
  return seen(await sluice.post("/v1/chat/completions", bodyOf("chat", `acme/${model}`, true, more)));
}

/** Starts this many clients, each of which sends one request after another until it is stopped. */
function load(model: string, clients: number) {
  const answers: Seen[] = [];
  let isOver = false;
  const client = async (name: number) => {
    for (let count = 0; !isOver; count++) answers.push(await asks(model, `${name} asks ${count}`));
  };
  const running = Promise.all(Array.from({ length: clients }, (_, name) => client(name)));
  return {
    answers,
    async stop() {
      isOver = true;
      await running;
    },
  };
}

const askedFor = (engine: Engine, model: string) => engine.asked.filter((one) => one.model === model).length;

test("one of two engines dies in the middle of load, and comes back: no client sees it", async () => {
  const running = load("dying", 8);
  await until(() => askedFor(first, "dying") > 20 && askedFor(second, "dying") > 20, 30_000, "load on both");
  await first.stop();
  const before = { answers: running.answers.length, survivor: askedFor(second, "dying") };
  await until(() => running.answers.length > before.answers + 150, 30_000, "load on the survivor");
  const offered = running.answers.length - before.answers;
  const sent = askedFor(second, "dying") - before.survivor;
  first.start();
  const back = askedFor(first, "dying");
  await until(() => askedFor(first, "dying") > back + 20, 2 * probation_ms_max, "the first engine to be used again");
  await running.stop();
  expect(running.answers.filter(({ isComplete, text }) => !isComplete || text !== words)).toEqual([]);
  // In addition, up to eight requests were in flight when the engine died.
  expect(sent).toBeLessThanOrEqual(1.1 * offered + 8);
}, 120_000);

test("a sick engine is met by one request at a time", async () => {
  third.delay_ms = 150;
  const running = load("sick", 8);
  await until(() => askedFor(third, "sick") > 10, 30_000, "load on both");
  third.isSick = true;
  const isOpen = async () => !(await isWell("sick")) && third.inFlight === 0;
  await until(isOpen, 30_000, "the breaker to open");
  third.most = 0;
  const probes = askedFor(third, "sick");
  await until(() => askedFor(third, "sick") >= probes + 2, 30_000, "two probes");
  expect(third.most).toBe(1);
  third.isSick = false;
  await until(() => isWell("sick"), 2 * probation_ms_max, "it to be well");
  await running.stop();
  expect(running.answers.filter(({ isComplete }) => !isComplete)).toEqual([]);
}, 120_000);

/** Whether all of the model's routes are healthy. */
async function isWell(model: string): Promise<boolean> {
  const metrics = await (await sluice.fetch("/metrics")).text();
  return metrics.includes(`upstream_routes{model="acme/${model}",upstream="",state="closed"} 2`);
}
