/** A node's life: it drains, it reloads, it is killed; and no client, and no record, is lost by it. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventsOf, inferenceBodies, model, says, startService, words } from "../../harness/engine.ts";
import { linesOf, linesThen } from "../../harness/log-lines.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

describe("SIGTERM", () => {
  test("lets a stream finish, says not ready meanwhile, and exits 0", async () => {
    const service = await startService({ limits: "{ drain_delay_ms: 600 }" });
    const response = await service.post("/v1/chat/completions", {
      model,
      messages: says("tps=40", words(40)),
      stream: true,
    });
    const events = eventsOf(response);
    service.signal("SIGTERM");
    await until(async () => (await service.fetch("/readyz", { key: null })).status === 503, 500, "/readyz to say no");
    const alive = await service.fetch("/livez", { key: null });
    expect(alive.status).toBe(200);
    // `connection: close` makes the client's next request use a new connection, which may lead to another node.
    expect(alive.headers.get("connection")).toBe("close");
    const data = await events;
    expect(data.at(-1)).toBe("[DONE]");
    expect(data.join("")).toContain('"finish_reason":"stop"');
    expect(await service.stop()).toBe(0);
  }, 30_000);

  test("ends what is not done by the deadline with the protocol's error, and exits 0", async () => {
    const service = await startService({ limits: "{ drain_ms: 300 }" });
    const stream = eventsOf(
      await service.post("/v1/chat/completions", { model, messages: says("tps=20", words(5000)), stream: true }),
    );
    const whole = service.post("/v1/chat/completions", { model, messages: says("tps=20", words(5000)) });
    await until(() => service.engine.counts.active === 2, 5000, "both to run");
    service.signal("SIGTERM");
    const data = await stream;
    expect(data.at(-1)).toBe("[DONE]");
    expect(JSON.parse(data.at(-2) ?? "")).toMatchObject({ error: { code: "draining" } });
    expect((await whole).status).toBe(503);
    expect(await service.exited).toBe(0);
    await service.stop();
  }, 30_000);
});

describe("silence", () => {
  test("on a stream is broken in each protocol's way, and a status is never later than the hold", async () => {
    const service = await startService({ limits: "{ heartbeat_ms: 50, first_event_hold_ms: 100 }" });
    for (const [path, beginning, end] of [
      ["/v1/chat/completions", /^(: .*\n+){5}/, /"finish_reason":"stop".*\n\n(data: .*\n\n)?data: \[DONE\]\n\n$/],
      ["/v1/messages", /^event: message_start\n.*\n\n(event: ping\n.*\n\n){3}/, /event: message_stop\ndata: .*\n\n$/],
      [
        "/v1/responses",
        /^event: response.created\n.*\n\n(event: response.in_progress\n.*\n\n){3}/,
        /event: response.completed\ndata: .*"hello there".*\n\n(data: \[DONE\]\n\n)?$/,
      ],
    ] as const) {
      const response = await service.post(path, { model, stream: true, ...inferenceBodies[path]!("ttft=1000 echo") });
      const text = await response.text();
      expect(text).toMatch(beginning);
      expect(text).toMatch(end);
    }
    // A failure that comes after the status was sent is an error in the stream.
    const failing = { model, messages: says("slow-headers=600 status=500"), stream: true };
    const late = await eventsOf(await service.post("/v1/chat/completions", failing));
    expect(JSON.parse(late[0] ?? "")).toMatchObject({ error: { code: "upstream_unavailable" } });
    expect(late.at(-1)).toBe("[DONE]");
    await service.stop();
  }, 30_000);

  test("of an engine is ended by its deadline, in the middle too", async () => {
    const service = await startService({ timeouts: "{ first_part_ms: 300, idle_ms: 300 }" });
    const early = await service.post("/v1/chat/completions", { model, messages: says("stall"), stream: true });
    expect(early.status).toBe(503);
    const late = await eventsOf(
      await service.post("/v1/chat/completions", { model, messages: says("stall-after=2", words(9)), stream: true }),
    );
    expect(JSON.parse(late.at(-2) ?? "")).toMatchObject({ error: { code: "upstream_timeout" } });
    await service.stop();
  }, 30_000);
});

describe("a client that reads slowly", () => {
  test("costs no memory: what it does not read is not fetched", async () => {
    // The events would take 150 megabytes if all were fetched.
    const service = await startService({ engine: { directives: "", namesModel: false } });
    const rss = () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
    const request = JSON.stringify({ model, messages: says("tokens=200000"), stream: true });
    await (await service.post("/v1/chat/completions", { model, messages: says("tokens=5000"), stream: true })).text();
    const { hostname, port } = new URL(service.url);
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${service.key}\r\ncontent-type: application/json\r\ncontent-length: ${request.length}\r\n\r\n`;
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
    // At least a quarter of the tokens that were asked for was never made, and the memory for what waits to be sent
    // does not grow.
    expect(produced).toBeLessThan(600_000);
    const waiting = rss();
    await until(settled, 5000, "the engine to be held back still");
    expect(rss() - waiting).toBeLessThan(30);
    for (const socket of sockets) socket.terminate();
    await until(() => service.engine.counts.active === 0, 5000, "the upstream to be let go");
    await service.stop();
  }, 60_000);
});

describe("SIGHUP", () => {
  const config = (id: string) => `metering: { currency: USD }
models:
  - id: acme/${id}
    owned_by: acme
    created: 1790000000
    context_window: 8192
    prices: { input: 0.001, output: 0.002 }
    routes: [{ upstream: simulator, model: x }]
`;
  test("brings a new catalog without losing a request; a bad file leaves the old one in force and says so", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-config-"));
    const file = join(folder, "sluice.yaml");
    writeFileSync(file, config("first"));
    const sluice = await startSluice({ env: { SLUICE_CONFIG: file } });
    const ids = async () =>
      ((await (await sluice.fetch("/v1/models")).json()) as { data: { id: string }[] }).data.map((entry) => entry.id);
    expect(await ids()).toEqual(["acme/first"]);
    const running = eventsOf(
      await sluice.post("/v1/chat/completions", {
        model: "acme/first",
        messages: says("tps=50 tokens=60"),
        stream: true,
      }),
    );
    let statuses: number[] = [];
    let going = true;
    const load = (async () => {
      while (going) statuses.push((await sluice.fetch("/v1/models")).status);
    })();
    writeFileSync(file, config("second"));
    sluice.signal("SIGHUP");
    await until(async () => (await ids())[0] === "acme/second", 5000, "the new catalog");
    expect((await (await sluice.fetch("/openapi.json", { key: null })).text()).includes("acme/second")).toBe(true);
    writeFileSync(file, "models: [\n");
    sluice.signal("SIGHUP");
    await until(() => sluice.stderr().includes("configuration_refused"), 5000, "the refusal in the log");
    expect(await ids()).toEqual(["acme/second"]);
    going = false;
    await load;
    expect(statuses.every((status) => status === 200)).toBe(true);
    expect((await running).at(-1)).toBe("[DONE]");
    statuses = [];
    await sluice.stop();
    rmSync(folder, { recursive: true });
  }, 40_000);
});

describe("a plan that organizations are on", () => {
  test("is not taken away by a reload, unless it says so; a start without it is loud", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-plans-"));
    const file = join(folder, "sluice.yaml");
    writeFileSync(file, "plans: { gold: {}, silver: {} }");
    const env = { SLUICE_CONFIG: file };
    const dataDir = join(folder, "data");
    const database = await migratedDatabase();
    const start = () => startSluice({ dataDir, store: "pglite", env: { ...env, DATABASE_URL: database.url } });
    const first = await start();
    for (const [slug, plan] of [
      ["acme", "gold"],
      ["umbrella", "gold"],
      ["other", "starter"],
    ])
      await first.json("org", "create", slug!, "--plan", plan!);
    const key = (await first.json<{ key: string }>("key", "create", "--org", "acme", "--name", "k")).key;
    const hash = async (node = first) => {
      const verbose = (await (await node.fetch("/readyz?verbose", { key: null })).json()) as { configuration: string };
      const metrics = await (await node.fetch("/metrics", { key: null })).text();
      expect(metrics.match(/^configuration_info\{.*$/gm)).toEqual([
        `configuration_info{hash="${verbose.configuration}"} 1`,
      ]);
      return verbose.configuration;
    };
    const before = await hash();
    const reloaded = async (text: string, event: string) => {
      const seen = linesOf(first, event).length;
      writeFileSync(file, text);
      first.signal("SIGHUP");
      await linesThen(first, event, seen + 1);
    };
    await reloaded("plans: { silver: {} }", "configuration_refused");
    expect(JSON.stringify(linesOf(first, "configuration_refused"))).toContain(
      "plan 'gold' is used by 2 organizations (acme, umbrella); move them",
    );
    expect(await hash()).toBe(before);
    // A plan that nobody uses may be removed.
    await reloaded("plans: { gold: {} }", "configuration_reloaded");
    expect(await hash()).not.toBe(before);
    await reloaded("reload: { force: true }", "configuration_reloaded");
    const body = { model: "openai/gpt-oss-20b", messages: says("") };
    const asked = async () => (await first.post("/v1/chat/completions", body, { key })).status;
    // A change of plans takes effect within a second.
    await until(async () => (await asked()) === 402, 10_000, "the plan to be gone");
    await first.stop();
    const second = await start();
    const told = /"level":"error","event":"plan_missing".*acme, umbrella/;
    await until(() => told.test(second.stderr()), 10_000, "the start to be loud");
    await second.stop();
    await database.drop();
    rmSync(folder, { recursive: true });
  }, 60_000);
});

describe("kill -9", () => {
  test("in the middle of a run of chats: it starts again, and no confirmed record is missing", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-kill-"));
    const dataDir = join(folder, "data");
    const config = `metering: { lease_s: 1, checkpoint_s: 0.2, sweep_s: 0.2 }\n`;
    const first = await startSluice({ dataDir, config, store: "pglite" });
    const { key } = first;
    const asked: string[] = [];
    const confirmed: string[] = [];
    const chat = async () => {
      const response = await first.post("/v1/chat/completions", {
        model: "openai/gpt-oss-20b",
        messages: says("tps=200", "x"),
        stream: true,
      });
      const id = requestIdOf(response);
      asked.push(id);
      await response.text();
      const { outcome } = await endedReceipt(first, id, { deadline_ms: 5000 });
      if (outcome === "completed") confirmed.push(id);
    };
    const clients = Array.from({ length: 8 }, async () => {
      for (;;) await chat();
    });
    for (const client of clients) client.catch(() => {});
    await until(() => confirmed.length >= 12, 30_000, "some records");
    first.signal("SIGKILL");
    await first.exited;
    const known = [...confirmed];
    const admitted = [...asked];

    const second = await startSluice({ dataDir, config, store: "pglite" });
    const outcomeOf = async (id: string) => {
      const response = await second.fetch(`/v1/service/requests/${id}`, { key });
      return ((await response.json()) as { outcome?: string }).outcome ?? "missing";
    };
    expect(await Promise.all(known.map(outcomeOf))).toEqual(known.map(() => "completed"));
    // The requests that were running are settled at their last checkpoint when their leases end: one record each.
    await until(
      async () =>
        !(await Promise.all(admitted.map(outcomeOf))).some((outcome) => outcome === "running" || outcome === "missing"),
      10_000,
      "the recovery",
    );
    await second.stop();
    rmSync(folder, { recursive: true, force: true });
  }, 240_000);
});
