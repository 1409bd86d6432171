/**
 * Engines behind one host name, over real sockets and a real name server: addresses are added and removed, engines die
 * and come back.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { freePort } from "../harness/daemon.ts";
import { lineOf, linesOf } from "../harness/log-lines.ts";
import { type NameServer, startNameServer } from "../harness/name-server.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { bodyOf, type Seen, seen } from "./callers.ts";
import { configOf } from "./config.ts";
import { type Engine, startEngine, words } from "./engine.ts";

/** The host name in the URLs. Names below `localhost` may resolve to this machine. */
const name = "engines.localhost";
const addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"];
let server: NameServer;
let engines: Engine[];
let sluice: Sluice;
let operator = "";

beforeAll(async () => {
  server = await startNameServer();
  engines = [startEngine({ hostname: addresses[0]! })];
  const port = Number(new URL(engines[0]!.url).port);
  engines.push(...addresses.slice(1).map((hostname) => startEngine({ hostname, port })));
  const operatorPort = await freePort();
  operator = `http://127.0.0.1:${operatorPort}`;
  const upstream = (host: string) => ({
    ...{ url: `http://${host}:${port}/v1`, check: { interval_ms: 100 } },
    resolve: { servers: [server.at], interval_ms: 100 },
  });
  const upstreams = {
    "canary-many": upstream(name),
    "canary-late": upstream("late.localhost"),
    "canary-own": upstream("own.test"),
  };
  sluice = await startSluice({
    config: configOf(upstreams, { many: ["canary-many"], late: ["canary-late"], own: ["canary-own"] }),
    env: { SLUICE_OPERATOR_PORT: `${operatorPort}` },
    operatorsWords: [...Object.keys(upstreams), ...addresses.slice(1)],
  });
}, 60_000);
afterAll(async () => {
  await sluice.stop();
  await Promise.all(engines.map((engine) => engine.stop()));
  await server.stop();
});

async function asks(model: string, user: string, session: string | null = null): Promise<Seen> {
  const more = { messages: [{ role: "user", content: user }] };
  const headers: Record<string, string> = session === null ? {} : { "x-claude-code-session-id": session };
  return seen(await sluice.post("/v1/chat/completions", bodyOf("chat", `acme/${model}`, true, more), { headers }));
}

interface View {
  upstream: string;
  replica?: string;
  state: string;
}
async function routes(upstream: string): Promise<View[]> {
  const body = (await (await fetch(`${operator}/readyz?verbose`)).json()) as { routes: View[] };
  return body.routes.filter((route) => route.upstream === upstream);
}

/** Sets the addresses of a name, and waits until Sluice uses them. */
async function leadsTo(upstream: string, host: string, to: string[]): Promise<void> {
  server.names.set(host, { ipv4: to });
  const know = async () => (await routes(upstream)).map(({ replica }) => replica).join() === to.toSorted().join();
  await until(know, 20_000, `${host} to lead to ${to}`);
}

test("a node starts though nothing is known of a name, says so, and serves when it is", async () => {
  const [late] = await routes("canary-late");
  expect(late).toMatchObject({ upstream: "canary-late", state: "unresolved" });
  await lineOf(sluice, { event: "upstream_unresolved", upstream: "canary-late", problem: "empty", addresses: 0 });
  const { status, text } = await asks("late", "too early");
  expect([status, text]).toEqual([503, ""]);
  await leadsTo("canary-late", "late.localhost", [addresses[0]!]);
  expect(await asks("late", "in time")).toMatchObject({ status: 200, text: words });
});

test("a name leads to this machine only where it says so", async () => {
  const before = server.asked.udp;
  server.names.set("own.test", { ipv4: addresses });
  await lineOf(sluice, { problem: "own" });
  await until(() => server.asked.udp > before + 10, 20_000, "some more answers");
  expect(await routes("canary-own")).toMatchObject([{ state: "unresolved" }]);
  expect((await asks("own", "inside")).status).toBe(503);
  expect(engines.flatMap(({ asked }) => asked.filter(({ model }) => model === "own"))).toEqual([]);
});

test("a request that runs at an address that goes is finished there", async () => {
  await leadsTo("canary-many", name, [addresses[1]!]);
  engines[1]!.delay_ms = 30_000;
  const before = engines[1]!.asked.length;
  const running = asks("many", "runs on");
  await until(() => engines[1]!.asked.length > before, 10_000, "the request to be there");
  await leadsTo("canary-many", name, [addresses[2]!]);
  engines[1]!.delay_ms = 20;
  expect(await asks("many", "goes on")).toMatchObject({ text: words });
  expect(engines[2]!.asked.at(-1)!.user).toBe("goes on");
  engines[1]!.hurry();
  expect(await running).toMatchObject({ status: 200, text: words });
}, 60_000);

test("one dies under load, and its address goes later: no client sees it", async () => {
  await leadsTo("canary-many", name, addresses);
  const answers: Seen[] = [];
  let isOver = false;
  const client = async (number: number) => {
    for (let count = 0; !isOver; count++) answers.push(await asks("many", `${number} asks ${count}`));
  };
  const running = Promise.all(Array.from({ length: 8 }, (_, number) => client(number)));
  await until(() => answers.length > 50, 30_000, "load");
  await engines[3]!.stop();
  await until(async () => (await routes("canary-many"))[3]?.state !== "closed", 30_000, "it to be known as ill");
  await until(() => answers.length > 150, 30_000, "load on the others");
  await leadsTo("canary-many", name, addresses.slice(0, 3));
  const at = answers.length;
  await until(() => answers.length > at + 100, 30_000, "load without it");
  isOver = true;
  await running;
  engines[3]!.start();
  expect(answers.filter(({ isComplete, text }) => !isComplete || text !== words)).toEqual([]);
}, 120_000);

test("each address has a check of its own, and one that goes is no longer asked, nor said to be up", async () => {
  await leadsTo("canary-many", name, addresses.slice(0, 2));
  engines[1]!.isSick = true;
  const down = async () => (await routes("canary-many")).map(({ state }) => state).join() === "closed,down";
  await until(down, 20_000, "one of the two to be down");
  await lineOf(sluice, { event: "upstream_down", replica: addresses[1] });
  await leadsTo("canary-many", name, addresses.slice(0, 1));
  const { checks } = engines[1]!;
  const before = engines[0]!.checks;
  await until(() => engines[0]!.checks > before + 5, 20_000, "more checks of the other");
  expect(engines[1]!.checks).toBeLessThanOrEqual(checks + 1);
  expect(linesOf(sluice, "upstream_up")).toEqual([]);
  engines[1]!.isSick = false;
});

test("what operators see of replicas: the log, the record, the list and the metrics; the engine sees the name", async () => {
  await leadsTo("canary-many", name, [addresses[1]!]);
  const told = await asks("many", "who are you");
  const line = await lineOf(sluice, { request_id: told.requestId });
  expect(line).toMatchObject({ upstream: "canary-many", replica: addresses[1] });
  expect(engines[1]!.asked.at(-1)!.headers.get("host")).toBe(`${name}:${new URL(engines[1]!.url).port}`);
  const { route } = await sluice.json<{ route: object }>("request", "show", told.requestId);
  expect(route).toMatchObject({
    ...{ upstream: "canary-many", attempts: 1 },
    tried: [{ upstream: "canary-many", replica: addresses[1], outcome: "answered", ms: expect.any(Number) }],
  });
  const { stdout } = await sluice.cli("upstream", "list");
  expect(stdout).toMatch(/^UPSTREAM +REPLICA +MODEL/);
  expect(stdout).toMatch(/^canary-many +127\.0\.0\.2 +acme\/many +closed/m);
  const metrics = async () => (await fetch(`${operator}/metrics`)).text();
  const at = 'upstream="canary-many",replica="127.0.0.2"';
  expect(await metrics()).toContain(`upstream_replica_attempts_total{${at},outcome="answered"}`);
  expect(await metrics()).toContain(`upstream_replica_routes{${at},state="closed"} 1`);
  expect(await metrics()).toContain('upstream_addresses{upstream="canary-many"} 1');
  await leadsTo("canary-many", name, [addresses[2]!]);
  expect(await metrics()).not.toContain('replica="127.0.0.2"');
  expect(await (await sluice.fetch("/readyz?verbose")).text()).not.toContain("127.0.0");
});

test("a name server that fails takes no address away, and is told of once", async () => {
  await leadsTo("canary-many", name, addresses.slice(0, 2));
  const failures = () =>
    linesOf(sluice, "upstream_unresolved").filter(
      ({ upstream, problem }) => `${upstream} ${problem}` === "canary-many failed",
    );
  const before = failures().length;
  server.names.set(name, { says: "failure" });
  await until(() => failures().length > before, 20_000, "the log to say so");
  const asked = server.asked.udp;
  await until(() => server.asked.udp > asked + 20, 20_000, "more failures");
  expect(await asks("many", "still there")).toMatchObject({ text: words });
  expect((await routes("canary-many")).map(({ replica }) => replica)).toEqual(addresses.slice(0, 2));
  expect(failures()).toHaveLength(before + 1);
  await leadsTo("canary-many", name, addresses.slice(0, 3));
});
