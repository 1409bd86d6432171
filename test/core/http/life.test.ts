/** The life of a node: it drains, reloads its configuration, is killed; and it loses no client and no record. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventsOf, inferenceBodies, model, type Service, says, startService, words } from "../../harness/engine.ts";
import { lineOf, linesOf, linesThen } from "../../harness/log-lines.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const chat = "/v1/chat/completions";
/** A streamed answer to the directives. */
const streamed = (of: Service, directives: string, text?: string) =>
  of.post(chat, { model, messages: says(directives, text), stream: true });

describe("a node", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({
      limits: "{ heartbeat_ms: 50, first_event_hold_ms: 100, drain_delay_ms: 3000 }",
      timeouts: "{ first_part_ms: 900, idle_ms: 500 }",
      engine: { directives: "", namesModel: false },
    });
  });
  afterAll(() => service.stop());

  test("breaks silence on a stream in each protocol's way, and a status is never later than the hold", async () => {
    for (const [path, beginning, end] of [
      [chat, /^(: .*\n+){5}/, /"finish_reason":"stop".*\n\n(data: .*\n\n)?data: \[DONE\]\n\n$/],
      ["/v1/messages", /^event: message_start\n.*\n\n(event: ping\n.*\n\n){3}/, /event: message_stop\ndata: .*\n\n$/],
      [
        "/v1/responses",
        /^event: response.created\n.*\n\n(event: response.in_progress\n.*\n\n){3}/,
        /event: response.completed\ndata: .*"hello there".*\n\n(data: \[DONE\]\n\n)?$/,
      ],
    ] as const) {
      const response = await service.post(path, { model, stream: true, ...inferenceBodies[path]!("ttft=600 echo") });
      const text = await response.text();
      expect(text).toMatch(beginning);
      expect(text).toMatch(end);
    }
    // A failure that comes after the status was sent is an error in the stream.
    const late = await eventsOf(await streamed(service, "slow-headers=600 status=500"));
    expect(JSON.parse(late[0] ?? "")).toMatchObject({ error: { code: "upstream_unavailable" } });
    expect(late.at(-1)).toBe("[DONE]");
  });

  test("ends the silence of an engine by its deadline, in the middle too", async () => {
    expect((await service.post(chat, { model, messages: says("stall") })).status).toBe(503);
    const response = await streamed(service, "echo stall-after=2", words(9));
    const late = await eventsOf(response);
    expect(JSON.parse(late.at(-2) ?? "")).toMatchObject({ error: { code: "upstream_timeout" } });
    // The log says which wait has ended, although the status was sent long before.
    const line = await lineOf(service, { event: "request", request_id: requestIdOf(response) });
    expect(line).toMatchObject({ level: "error", code: "upstream_timeout" });
    expect(line.cause).toStartWith("Error: the upstream took too long: the next part");
  });

  test("lets a stream finish at SIGTERM, says not ready meanwhile, and exits 0", async () => {
    const metrics = async () => (await service.fetch("/metrics", { key: null })).text();
    expect(await metrics()).toContain("\nnode_ready 1\n");
    const events = eventsOf(await streamed(service, "echo tps=40", words(40)));
    service.signal("SIGTERM");
    await until(async () => (await service.fetch("/readyz", { key: null })).status === 503, 2_000, "/readyz to say no");
    expect(await metrics()).toContain("\nnode_ready 0\n");
    const alive = await service.fetch("/livez", { key: null });
    expect(alive.status).toBe(200);
    // `connection: close` makes the client's next request use a new connection, which may lead to another node.
    expect(alive.headers.get("connection")).toBe("close");
    const data = await events;
    expect(data.at(-1)).toBe("[DONE]");
    expect(data.join("")).toContain('"finish_reason":"stop"');
    expect(await service.exited).toBe(0);
  });
});

describe("a node with little time to drain", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ limits: "{ drain_ms: 300 }", engine: { directives: "", namesModel: false } });
  });
  afterAll(() => service.stop());

  test("spends no memory on a client that reads slowly: what it does not read is not fetched", async () => {
    // The events would take 150 megabytes if all were fetched.
    const rss = () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
    const request = JSON.stringify({ model, messages: says("tokens=200000"), stream: true });
    await (await streamed(service, "tokens=5000")).text();
    const { hostname, port } = new URL(service.url);
    const head = `POST ${chat} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${service.key}\r\ncontent-type: application/json\r\ncontent-length: ${request.length}\r\n\r\n`;
    const open = (socket: { write(text: string): number; pause(): void }) => {
      socket.write(head + request);
      socket.pause();
    };
    const sockets = await Promise.all(
      Array.from({ length: 4 }, () => Bun.connect({ hostname, port: Number(port), socket: { open, data() {} } })),
    );
    let produced = -1;
    const settled = async () => {
      const last = produced;
      await Bun.sleep(300);
      produced = service.engine.requests.reduce((sum, entry) => sum + entry.tokens, 0);
      return service.engine.counts.active === 4 && produced > 5000 && produced === last;
    };
    await until(settled, 20_000, "the engine to be held back");
    // At least a quarter of the requested tokens was never produced, and the memory of unsent events does not grow.
    expect(produced).toBeLessThan(600_000);
    const waiting = rss();
    await until(settled, 5000, "the engine to be held back still");
    expect(rss() - waiting).toBeLessThan(30);
    for (const socket of sockets) socket.terminate();
    await until(() => service.engine.counts.active === 0, 5000, "the upstream to be let go");
  });

  test("ends what is not done by the deadline of a drain with the protocol's error, and exits 0", async () => {
    const stream = eventsOf(await streamed(service, "echo tps=20", words(5000)));
    const whole = service.post(chat, { model, messages: says("echo tps=20", words(5000)) });
    await until(() => service.engine.counts.active === 2, 5000, "both to run");
    service.signal("SIGTERM");
    const data = await stream;
    expect(data.at(-1)).toBe("[DONE]");
    expect(JSON.parse(data.at(-2) ?? "")).toMatchObject({ error: { code: "draining" } });
    expect((await whole).status).toBe(503);
    expect(await service.exited).toBe(0);
  });
});

test("an answer that is made before a drain is sent to its end, as slowly as its client reads", async () => {
  const length = 7_000_000;
  const message = { role: "assistant", content: "a".repeat(length) };
  const engine = Bun.serve({
    port: 0,
    fetch: () => Response.json({ choices: [{ index: 0, message, finish_reason: "stop" }] }),
  });
  const config = `upstreams: { main: { url: "http://127.0.0.1:${engine.port}/v1" } }
metering: { currency: USD }
models:
  - id: acme/writer-1
    created: 1790000000
    context_window: 10000000
    prices: { input: 0.001, output: 0.001 }
    routes: [{ upstream: main, model: m }]
limits: { drain_delay_ms: 0 }
`;
  const node = await startSluice({ config });
  const { hostname, port } = new URL(node.url);
  const body = JSON.stringify({ model: "acme/writer-1", messages: says("long") });
  const head = `POST ${chat} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${node.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  const client = connect(Number(port), hostname);
  client.write(head + body);
  let read_bytes = 0;
  const begun = new Promise((resolve) => client.once("data", resolve));
  client.on("data", (bytes) => {
    read_bytes += bytes.length;
  });
  await begun;
  // The operating system buffers half of the answer. The client reads the rest when the node has long finished all
  // other work.
  client.pause();
  node.signal("SIGTERM");
  await linesThen(node, "draining", 1);
  await Bun.sleep(2_000);
  client.resume();
  await new Promise((resolve) => client.on("close", resolve));
  expect(read_bytes).toBeGreaterThan(length);
  expect(await node.exited).toBe(0);
  await node.stop();
  await engine.stop(true);
});

describe("a reload", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-reload-"));
  const file = join(folder, "sluice.yaml");
  const written = (id: string, plans: string) =>
    writeFileSync(
      file,
      `metering: { currency: USD }
models:
  - id: acme/${id}
    owned_by: acme
    created: 1790000000
    context_window: 8192
    prices: { input: 0.001, output: 0.002 }
    routes: [{ upstream: simulator, model: x }]
${plans}
`,
    );
  let database: Awaited<ReturnType<typeof migratedDatabase>>;
  const start = () => {
    const env = { SLUICE_CONFIG: file, DATABASE_URL: database.url };
    return startSluice({ dataDir: join(folder, "data"), store: "pglite", env });
  };
  let node: Sluice;
  /** The key of an organization on the plan `gold`. */
  let key: string;
  beforeAll(async () => {
    database = await migratedDatabase();
    written("first", "plans: { gold: {}, silver: {} }");
    node = await start();
    for (const [slug, plan] of Object.entries({ acme: "gold", umbrella: "gold", other: "starter" }))
      await node.json("org", "create", slug, "--plan", plan);
    ({ key } = await node.json<{ key: string }>("key", "create", "--org", "acme", "--name", "k"));
  });
  afterAll(async () => {
    await node.stop();
    await database.drop();
    rmSync(folder, { recursive: true });
  });

  const reloaded = async (event: string) => {
    const seen = linesOf(node, event).length;
    node.signal("SIGHUP");
    await linesThen(node, event, seen + 1);
  };
  const listed = () => node.fetch("/v1/models", { key });
  const ids = async () => ((await (await listed()).json()) as { data: { id: string }[] }).data.map(({ id }) => id);

  test("brings a new catalog without losing a request; a bad file leaves the old one in force and says so", async () => {
    expect(await ids()).toEqual(["acme/first"]);
    const running = eventsOf(
      await node.post(chat, { model: "acme/first", messages: says("tps=50 tokens=60"), stream: true }, { key }),
    );
    const statuses: number[] = [];
    let going = true;
    const load = (async () => {
      while (going) statuses.push((await listed()).status);
    })();
    written("second", "plans: { gold: {}, silver: {} }");
    await reloaded("configuration_reloaded");
    expect(await ids()).toEqual(["acme/second"]);
    expect((await (await node.fetch("/openapi.json", { key: null })).text()).includes("acme/second")).toBe(true);
    writeFileSync(file, "models: [\n");
    await reloaded("configuration_refused");
    expect(await ids()).toEqual(["acme/second"]);
    going = false;
    await load;
    expect(statuses.every((status) => status === 200)).toBe(true);
    expect((await running).at(-1)).toBe("[DONE]");
  });

  test("takes no plan away that organizations are on, unless it says so; a start without it is loud", async () => {
    const hash = async () => {
      const verbose = (await (await node.fetch("/readyz?verbose", { key: null })).json()) as { configuration: string };
      const metrics = await (await node.fetch("/metrics", { key: null })).text();
      expect(metrics.match(/^configuration_info\{.*$/gm)).toEqual([
        `configuration_info{hash="${verbose.configuration}"} 1`,
      ]);
      return verbose.configuration;
    };
    const before = await hash();
    written("second", "plans: { silver: {} }");
    await reloaded("configuration_refused");
    expect(JSON.stringify(linesOf(node, "configuration_refused"))).toContain(
      "plan 'gold' is used by 2 organizations (acme, umbrella); move them",
    );
    expect(await hash()).toBe(before);
    // A plan that nobody uses may be removed.
    written("second", "plans: { gold: {} }");
    await reloaded("configuration_reloaded");
    expect(await hash()).not.toBe(before);
    written("second", "reload: { force: true }");
    await reloaded("configuration_reloaded");
    const asked = async () => (await node.post(chat, { model: "acme/second", messages: says("") }, { key })).status;
    // A change of plans takes effect within a second.
    await until(async () => (await asked()) === 402, 10_000, "the plan to be gone");
    await node.stop();
    node = await start();
    const told = /"level":"error","event":"plan_missing".*acme, umbrella/;
    await until(() => told.test(node.stderr()), 10_000, "the start to be loud");
  });
});

test("a reload while sluice.yaml is not there changes nothing, and says so", async () => {
  const node = await startSluice({ store: "postgres" });
  const file = join(node.dataDir, "../sluice.yaml");
  const config = `metering: { currency: USD }
models:
  - id: acme/own
    created: 1790000000
    context_window: 8192
    prices: { input: 0.001, output: 0.002 }
    routes: [{ upstream: simulator, model: x }]
`;
  const reloaded = async (event: string) => {
    const seen = linesOf(node, event).length;
    node.signal("SIGHUP");
    return (await linesThen(node, event, seen + 1)).at(-1)!;
  };
  const ids = async () => {
    const { data } = (await (await node.fetch("/v1/models")).json()) as { data: { id: string }[] };
    return data.map(({ id }) => id);
  };
  writeFileSync(file, config);
  await reloaded("configuration_reloaded");
  expect(await ids()).toEqual(["acme/own"]);
  rmSync(file);
  expect((await reloaded("configuration_refused")).problems).toEqual([
    "sluice.yaml is not there any more; put it back, or restart the service to serve without it",
  ]);
  expect(await ids()).toEqual(["acme/own"]);
  writeFileSync(file, config);
  await reloaded("configuration_reloaded");
  await node.stop();
});

test("kill -9 in the middle of a run of chats: it starts again, and no confirmed record is missing", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-kill-"));
  const dataDir = join(folder, "data");
  const config = `metering: { lease_s: 1, checkpoint_s: 0.2, sweep_s: 0.2 }\n`;
  const first = await startSluice({ dataDir, config, store: "pglite" });
  const { key } = first;
  const asked: string[] = [];
  const confirmed: string[] = [];
  const body = { model: "openai/gpt-oss-20b", messages: says("tps=200", "x"), stream: true };
  const clients = Array.from({ length: 8 }, async () => {
    for (;;) {
      const response = await first.post(chat, body);
      const id = requestIdOf(response);
      asked.push(id);
      await response.text();
      const { outcome } = await endedReceipt(first, id, { deadline_ms: 5000 });
      if (outcome === "completed") confirmed.push(id);
    }
  });
  for (const client of clients) client.catch(() => {});
  await until(() => confirmed.length >= 12, 30_000, "some records");
  first.signal("SIGKILL");
  await first.exited;
  const [known, admitted] = [[...confirmed], [...asked]];

  const second = await startSluice({ dataDir, config, store: "pglite" });
  const outcomeOf = async (id: string) => {
    const response = await second.fetch(`/v1/service/requests/${id}`, { key });
    return ((await response.json()) as { outcome?: string }).outcome ?? "missing";
  };
  expect(await Promise.all(known.map(outcomeOf))).toEqual(known.map(() => "completed"));
  // The requests that were running are settled at their last checkpoint when their leases end: one record each.
  const settled = async () =>
    !(await Promise.all(admitted.map(outcomeOf))).some((outcome) => outcome === "running" || outcome === "missing");
  await until(settled, 10_000, "the recovery");
  await second.stop();
  rmSync(folder, { recursive: true, force: true });
}, 240_000);
