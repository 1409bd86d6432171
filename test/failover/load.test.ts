/** Engines that die and come back while requests run, and replicas that sessions stay with: over real sockets. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { probation_ms_max } from "../../src/core/routing/health.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { bodyOf, type Seen, seen } from "./callers.ts";
import { configOf } from "./config.ts";
import { type Engine, startEngine, words } from "./engine.ts";

const engines: Engine[] = Array.from({ length: 8 }, startEngine);
const [first, second, third, checked, ...replicas] = engines as [Engine, Engine, Engine, Engine, ...Engine[]];
let sluice: Sluice;

beforeAll(async () => {
  const [home, ...others] = replicas.map(({ url }) => url);
  const upstreams = {
    "canary-first": { url: first.url },
    "canary-second": { url: second.url },
    "canary-third": { url: third.url },
    "canary-checked": { url: checked.url, check: { interval_ms: 100 } },
    "canary-many": { url: home, replicas: others, cache_salt: true },
  };
  const models = {
    dying: ["canary-first", "canary-second"],
    sick: ["canary-third", "canary-second"],
    checked: ["canary-checked", "canary-second"],
    many: ["canary-many"],
  };
  sluice = await startSluice({ config: configOf(upstreams, models), operatorsWords: Object.keys(upstreams) });
}, 60_000);
afterAll(async () => {
  await sluice.stop();
  await Promise.all(engines.map((engine) => engine.stop()));
});

async function asks(model: string, user: string, headers: Record<string, string> = {}): Promise<Seen> {
  const more = { messages: [{ role: "user", content: user }] };
  return seen(await sluice.post("/v1/chat/completions", bodyOf("chat", `acme/${model}`, true, more), { headers }));
}

/** The given number of clients, each of which sends one request after the other until told to stop. */
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
  // Eight requests were on their way when the engine died.
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

test("an engine whose check fails gets no requests, and gets them again when it is well", async () => {
  await until(() => checked.checks > 2, 20_000, "checks");
  checked.isSick = true;
  await until(() => sluice.stderr().includes('"upstream_down"'), 20_000, "the check to fail");
  for (let count = 0; count < 8; count++) expect(await asks("checked", `${count}`)).toMatchObject({ text: words });
  expect(askedFor(checked, "checked")).toBe(0);
  checked.isSick = false;
  await until(() => sluice.stderr().includes('"upstream_up"'), 20_000, "the check to be answered");
  for (let count = 0; count < 16; count++) await asks("checked", `again ${count}`);
  expect(askedFor(checked, "checked")).toBeGreaterThan(0);
}, 60_000);

test("sessions stay with their replica; one is lost, and only its sessions move", async () => {
  const sessions = Array.from({ length: 16 }, (_, session) => `session-${session}`);
  const turn = async (count: number) => {
    for (const session of sessions)
      expect((await asks("many", `${session} ${count}`, { "x-claude-code-session-id": session })).text).toBe(words);
  };
  const home = (session: string, from: number) =>
    replicas.filter(({ asked }) => asked.some(({ user }) => isOf(user, session, from))).map(({ url }) => url);
  const isOf = (user: string, session: string, from: number) => {
    const [name, count] = user.split(" ");
    return name === session && Number(count) >= from;
  };
  for (let count = 0; count < 4; count++) await turn(count);
  const homes = new Map(sessions.map((session) => [session, home(session, 0)]));
  expect([...homes.values()].every((urls) => urls.length === 1)).toBe(true);
  const perReplica = replicas.map(({ url }) => [...homes.values()].filter(([one]) => one === url).length);
  expect(Math.max(...perReplica)).toBeLessThanOrEqual(5);
  // All requests are one organization's, so they have one cache salt.
  const salts = new Set(replicas.flatMap(({ asked }) => asked.map(({ cacheSalt }) => cacheSalt)));
  expect([...salts]).toEqual([expect.stringMatching(/^[\w-]{43}$/)]);
  const lost = replicas.find(({ url }) => url === homes.get("session-0")![0])!;
  await lost.stop();
  for (let count = 4; count < 8; count++) await turn(count);
  for (const session of sessions) {
    const [before] = homes.get(session)!;
    if (before === lost.url) expect(home(session, 4)).not.toContain(lost.url);
    else expect(home(session, 4)).toEqual([before!]);
  }
}, 60_000);

/** Whether all of the model's routes are in use. */
async function isWell(model: string): Promise<boolean> {
  const metrics = await (await sluice.fetch("/metrics")).text();
  return metrics.includes(`upstream_routes{model="acme/${model}",upstream="",state="closed"} 2`);
}
