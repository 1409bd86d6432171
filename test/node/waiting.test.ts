// A node whose Postgres cannot be reached at its start: it listens and waits if the problem may go away by itself, and
// exits if somebody has to fix it.

import { afterAll, beforeAll, expect, setDefaultTimeout, spyOn, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate, migrations } from "../../db/migrate.ts";
import { beginWaiting } from "../../src/node/waiting.ts";
import { serverDatabase } from "../../src/stores/postgres/server.ts";
import { configured } from "../config/reading.ts";
import { busyness } from "../harness/busyness.ts";
import { authority, written } from "../harness/certificates.ts";
import { freePort } from "../harness/daemon.ts";
import { redisUrl, startPostgres } from "../harness/services.ts";
import { gathered, program } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";

setDefaultTimeout(180_000);

const folder = mkdtempSync(join(tmpdir(), "sluice-waiting-"));
/** A Postgres that requires a password for the role `guarded`, and always refuses the role `barred`. */
let postgres: Awaited<ReturnType<typeof startPostgres>>;
beforeAll(async () => {
  postgres = await startPostgres(undefined, (data) => {
    const hba = join(data, "pg_hba.conf");
    const own = "host all guarded 127.0.0.1/32 scram-sha-256\nhost all barred 127.0.0.1/32 reject\n";
    writeFileSync(hba, own + readFileSync(hba, "utf8"));
    return [];
  });
});
afterAll(async () => {
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a node on a port that the test chooses, so that the test can connect before the node serves. */
async function started(env: Record<string, string>, ...words: string[]) {
  const port = await freePort();
  const all = { PATH: process.env.PATH ?? "", HOME: folder, PORT: `${port}`, SLUICE_WARM_UP_MS: "0", ...env };
  const child = Bun.spawn([...program, "serve", ...words], { cwd: folder, env: all, stdout: "pipe", stderr: "pipe" });
  const [out, err] = [gathered(child.stdout), gathered(child.stderr)];
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    child,
    err: err.text,
    waits: () => until(() => err.text().includes("database_awaited"), 20_000, "the node to wait"),
    serves: () => until(() => out.text().includes("is serving on"), 80_000, "the node to serve"),
    async ends() {
      const code = await child.exited;
      await err.ended;
      return code;
    },
    async stops() {
      child.kill("SIGTERM");
      return this.ends();
    },
  };
}

/** The URL of a database that refuses connections. */
const away = { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" };

const linesOf = (text: string) =>
  [...text.matchAll(/^\{.*$/gm)].map(([line]) => JSON.parse(line) as Record<string, unknown>);

const post = (url: string, body: object) => fetch(url, { method: "POST", body: JSON.stringify(body) });

test("a Postgres that starts late is waited for: probes and clients learn why, and then the node serves", async () => {
  const port = await freePort();
  const operator = await freePort();
  const DATABASE_URL = `postgres://postgres:hunter2@127.0.0.1:${port}/postgres`;
  const files = written(folder, "node", authority().issue(["127.0.0.1"]));
  const [node, secure, several] = await Promise.all([
    started({ DATABASE_URL, SLUICE_OPERATOR_PORT: `${operator}` }),
    started({ DATABASE_URL, SLUICE_TLS_CERTIFICATE_FILE: files.certificate, SLUICE_TLS_KEY_FILE: files.key }),
    started({ DATABASE_URL, SLUICE_WORKERS: "3", REDIS_URL: await redisUrl() }),
  ]);
  const nodes = [node, secure, several];
  const readinessOf = async ({ url }: typeof node) =>
    (await fetch(`${url}/readyz`, { tls: { rejectUnauthorized: false } })).status;
  secure.url = secure.url.replace("http:", "https:");
  await Promise.all(nodes.map((one) => one.waits()));

  expect((await fetch(`${node.url}/livez`)).status).toBe(200);
  for (const at of [node.url, `http://127.0.0.1:${operator}`]) {
    const readiness = await fetch(`${at}/readyz`);
    expect([readiness.status, readiness.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await readiness.json()).toEqual({
      status: "not_ready",
      checks: { database: "the database cannot be reached; this node waits for it" },
    });
  }
  for (const path of ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/oauth/of/anything"]) {
    const refused = await post(node.url + path, { model: "sluice-demo", stream: true });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(refused.headers.get("x-should-retry")).toBeNull();
    const body = (await refused.json()) as { type?: string; error: { code: string } };
    expect(JSON.stringify(body)).toContain("storage_unavailable");
    expect(body.type).toBe(path === "/v1/messages" ? "error" : undefined);
  }
  const upgrade = await fetch(`${node.url}/v1/responses`, { headers: { connection: "upgrade", upgrade: "websocket" } });
  expect(upgrade.status).toBe(503);
  expect([await readinessOf(secure), await readinessOf(several)]).toEqual([503, 503]);

  const late = await startPostgres(port);
  await Promise.all(nodes.map((one) => one.serves()));
  expect(await (await fetch(`${node.url}/readyz`)).json()).toEqual({ status: "ready", checks: {} });
  expect((await post(`${node.url}/v1/chat/completions`, {})).status).toBe(401);
  expect(await readinessOf(secure)).toBe(200);
  await until(async () => (await readinessOf(several)) === 200, 20_000, "the node of several workers to be ready");
  expect(await Promise.all(nodes.map((one) => one.stops()))).toEqual([0, 0, 0]);
  await late.stop();

  const events = linesOf(node.err());
  const awaited = events.filter(({ event }) => event === "database_awaited");
  expect(awaited[0]).toMatchObject({ level: "warn", waited_s: 0, cause: expect.stringContaining("ECONNREFUSED") });
  expect(events.filter(({ event }) => event === "database_reached")).toHaveLength(1);
  expect(node.err()).not.toContain("hunter2");
  // Only the first worker waits for the database, and the others are started after that.
  const ofSeveral = linesOf(several.err());
  const waiting = ofSeveral.filter(({ event }) => event === "database_awaited").map(({ worker }) => worker);
  expect([...new Set(waiting)]).toEqual([1]);
  expect(ofSeveral.filter(({ event }) => event === "worker_lost")).toEqual([]);
});

/** Writes a configuration file with a plan of this limit, and sets its modification time to so many minutes ago. */
function planFile(name: string, month: number, age_min = 0): string {
  const file = join(folder, name);
  writeFileSync(file, `plans: { gold: { month: ${month} } }`);
  const changedAt_s = Date.now() / 1000 - 60 * age_min;
  utimesSync(file, changedAt_s, changedAt_s);
  return file;
}

/** The limit of the plan in force, as a command prints it. */
async function monthOf(DATABASE_URL: string): Promise<string> {
  const env = { PATH: process.env.PATH ?? "", HOME: folder, DATABASE_URL };
  const child = Bun.spawn([...program, "plan", "show", "gold", "--json"], { cwd: folder, env, stdout: "pipe" });
  return ((await child.stdout.json()) as { month: { amount: string } }).month.amount;
}

test("a node that is asked to reload while it waits serves by the new file", async () => {
  const port = await freePort();
  const DATABASE_URL = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const SLUICE_CONFIG = planFile("reloaded.yaml", 1);
  const nodes = await Promise.all([
    started({ DATABASE_URL, SLUICE_CONFIG }),
    started({ DATABASE_URL, SLUICE_CONFIG, SLUICE_WORKERS: "2", REDIS_URL: await redisUrl() }),
  ]);
  await Promise.all(nodes.map((node) => node.waits()));
  planFile("reloaded.yaml", 2);
  for (const { child } of nodes) child.kill("SIGHUP");
  const late = await startPostgres(port);
  await Promise.all(nodes.map((node) => node.serves()));
  for (const { err } of nodes)
    await until(() => err().includes("configuration_reloaded"), 20_000, "the reload that was asked for");
  expect(await monthOf(DATABASE_URL)).toStartWith("2.0");
  expect(await Promise.all(nodes.map((node) => node.stops()))).toEqual([0, 0]);
  await late.stop();
});

test("plans have the age of the file that was read, though the file was changed since", async () => {
  const port = await freePort();
  const DATABASE_URL = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const first = await started({ DATABASE_URL, SLUICE_CONFIG: planFile("first.yaml", 1, 60) });
  const second = await started({ DATABASE_URL, SLUICE_CONFIG: planFile("second.yaml", 2, 30) });
  await Promise.all([first.waits(), second.waits()]);
  planFile("first.yaml", 3);
  const late = await startPostgres(port);
  await Promise.all([first.serves(), second.serves()]);
  expect(await monthOf(DATABASE_URL)).toStartWith("2.0");
  expect(await Promise.all([first.stops(), second.stops()])).toEqual([0, 0]);
  await late.stop();
});

test.each(["1", "2"])("SIGTERM ends a wait at once, with 0: %s workers", async (SLUICE_WORKERS) => {
  const node = await started({ ...away, SLUICE_WORKERS, REDIS_URL: await redisUrl() });
  await node.waits();
  const asked = performance.now();
  expect(await node.stops()).toBe(0);
  expect(performance.now() - asked).toBeLessThan(5_000 * busyness());
});

test("SIGTERM ends the first attempt, too, at a server that says nothing", async () => {
  const mute = createServer(() => {});
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  const { port } = mute.address() as { port: number };
  const connected = new Promise((resolve) => mute.once("connection", resolve));
  const node = await started({ DATABASE_URL: `postgres://nobody@127.0.0.1:${port}/none` });
  await connected;
  expect(await node.stops()).toBe(0);
  mute.close();
});

test("a node waits no longer than it is told, by an option or a variable, and ends with the reason", async () => {
  const began = performance.now();
  const none = { ...away, SLUICE_WAIT_FOR_DATABASE_MS: "0" };
  const [some, ...nodes] = await Promise.all([
    started(away, "--wait-for-database", "2s"),
    started(away, "--wait-for-database", "0s"),
    started(none),
    started({ ...none, SLUICE_WORKERS: "2", REDIS_URL: await redisUrl() }),
  ]);
  expect(await some.ends()).toBe(1);
  expect(performance.now() - began).toBeGreaterThan(2_000);
  const reason = "sluice: cannot use the database at 127.0.0.1:1/none: 127.0.0.1:1 refuses connections";
  expect(some.err()).toContain(reason);
  expect(await Promise.all(nodes.map((node) => node.ends()))).toEqual([1, 1, 1]);
  for (const { err } of nodes) expect(err()).toStartWith(reason);
});

test("a name that nobody knows is waited for, and so are too many connections, until one is free", async () => {
  const nameless = await started({ DATABASE_URL: "postgres://nobody@no-such-host.invalid/none" });
  await nameless.waits();
  expect(nameless.err()).toContain("no-such-host.invalid:5432");
  expect(await nameless.stops()).toBe(0);

  const sql = await serverDatabase(postgres.url, { connections_max: 1 });
  await sql.exec("create role few login connection limit 1");
  await sql.exec("create database few owner few");
  const url = new URL(postgres.url);
  url.username = "few";
  url.pathname = "/few";
  const only = await serverDatabase(url.href, { connections_max: 1 });
  const node = await started({ DATABASE_URL: url.href });
  await node.waits();
  const readiness = (await (await fetch(`${node.url}/readyz`)).json()) as { checks: object };
  expect(readiness.checks).toEqual({ database: "the database has no free connection; this node waits for it" });
  await only.close();
  await sql.exec("alter role few connection limit -1");
  await node.serves();
  expect(await node.stops()).toBe(0);
  await sql.close();
});

test("what somebody has to mend ends the start at once: password, user, database, TLS, a schema that it does not know", async () => {
  const sql = await serverDatabase(postgres.url);
  await sql.exec("create role guarded login password 'right'; create role barred login");
  await sql.exec("create database later");
  await sql.close();
  const later = await serverDatabase(postgres.url.replace(/postgres$/, "later"));
  await migrate(later, [...migrations, { name: "9999_of_tomorrow", sql: "select 1" }]);
  await later.close();
  const { host } = new URL(postgres.url);
  const cases: [address: string, says: string][] = [
    [`postgres://guarded:wrong@${host}/postgres`, "password authentication failed"],
    [`postgres://barred@${host}/postgres`, "pg_hba.conf rejects"],
    [`postgres://postgres@${host}/nowhere`, '"nowhere" does not exist'],
    [`postgres://postgres@${host}/postgres?sslmode=require`, "does not offer TLS"],
    [`postgres://postgres@${host}/postgres?sslmode=perhaps`, "sslmode is none of"],
    [`postgres://postgres@${host}/later`, "newer than this build"],
  ];
  await Promise.all(
    cases.map(async ([DATABASE_URL, says]) => {
      const node = await started({ DATABASE_URL });
      expect([await node.ends(), node.err()]).toEqual([1, expect.stringContaining(says)]);
      expect(node.err()).not.toContain("database_awaited");
    }),
  );
});

test("a port that somebody has ends a start that would wait", async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  const { port } = taken.address() as { port: number };
  const node = await started({ ...away, PORT: `${port}` });
  expect(await node.ends()).toBe(1);
  expect(node.err()).toContain(`${port}`);
  taken.close();
});

test("the log says every 30 seconds that a node still waits", async () => {
  let now_ms = 0;
  let written = "";
  using _time = spyOn(performance, "now").mockImplementation(() => now_ms);
  using _log = spyOn(process.stderr, "write").mockImplementation((text) => {
    written += text;
    return true;
  });
  const waiting = beginWaiting(configured(null, { PORT: "0" }), null);
  for (const at_s of [0, 1, 29, 30, 59, 60]) {
    now_ms = at_s * 1000;
    waiting.failed("cannot be reached", new Error("refused"));
  }
  await waiting.handOver();
  waiting.ended(true);
  const told = linesOf(written).map(({ event, waited_s }) => [event, waited_s]);
  expect(told).toEqual([...[0, 30, 60].map((at_s) => ["database_awaited", at_s]), ["database_reached", 60]]);
});
