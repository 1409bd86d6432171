// A node whose Postgres cannot be reached at its start: while the cause may mend itself, the node listens and waits; if
// somebody has to mend it, the node ends at once.

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrations } from "../../db/migrate.ts";
import { serverDatabase } from "../../src/stores/postgres/server.ts";
import { authority, written } from "../harness/certificates.ts";
import { freePort } from "../harness/daemon.ts";
import { redisUrl, startPostgres } from "../harness/services.ts";
import { program } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";

setDefaultTimeout(180_000);

const folder = mkdtempSync(join(tmpdir(), "sluice-waiting-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a node on a port that the test knows before the node serves. */
async function started(env: Record<string, string>, ...words: string[]) {
  const port = await freePort();
  const all = { PATH: process.env.PATH ?? "", HOME: folder, PORT: `${port}`, SLUICE_WARM_UP_MS: "0", ...env };
  const child = Bun.spawn([...program, "serve", ...words], { cwd: folder, env: all, stdout: "pipe", stderr: "pipe" });
  let [out, err] = ["", ""];
  const gather = async (stream: ReadableStream<Uint8Array>, add: (text: string) => void) => {
    for await (const bytes of stream) add(Buffer.from(bytes).toString());
  };
  const read = Promise.all([
    gather(child.stdout, (text) => (out += text)),
    gather(child.stderr, (text) => (err += text)),
  ]);
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    child,
    out: () => out,
    err: () => err,
    waits: () => until(() => err.includes("database_awaited"), 20_000, "the node to wait"),
    serves: () => until(() => out.includes("is serving on"), 80_000, "the node to serve"),
    async ends() {
      const code = await child.exited;
      await read;
      return code;
    },
    async stops() {
      child.kill("SIGTERM");
      return this.ends();
    },
  };
}

/** The node is started here, so that it waits while the other tests run. */
const patient = started({ DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" });

const linesOf = (text: string) =>
  text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

const post = (url: string, body: object) => fetch(url, { method: "POST", body: JSON.stringify(body) });

test("a Postgres that starts late is waited for: probes and clients learn why, and then the node serves", async () => {
  const port = await freePort();
  const operator = await freePort();
  const address = `postgres://postgres:hunter2@127.0.0.1:${port}/postgres`;
  const node = await started({ DATABASE_URL: address, SLUICE_OPERATOR_PORT: `${operator}` });
  await node.waits();

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

  const postgres = await startPostgres(port);
  await node.serves();
  expect(await (await fetch(`${node.url}/readyz`)).json()).toEqual({ status: "ready", checks: {} });
  expect((await post(`${node.url}/v1/chat/completions`, {})).status).toBe(401);
  expect(await node.stops()).toBe(0);
  await postgres.stop();

  const events = linesOf(node.err());
  const awaited = events.filter(({ event }) => event === "database_awaited");
  expect(awaited[0]).toMatchObject({ level: "warn", waited_s: 0, cause: expect.stringContaining("ECONNREFUSED") });
  expect(events.filter(({ event }) => event === "database_reached")).toHaveLength(1);
  expect(node.err()).not.toContain("hunter2");
});

test("a node of several workers waits as one does, and starts the others then", async () => {
  const port = await freePort();
  const env = { DATABASE_URL: `postgres://postgres@127.0.0.1:${port}/postgres`, REDIS_URL: await redisUrl() };
  const node = await started({ ...env, SLUICE_WORKERS: "3" });
  await node.waits();
  expect((await fetch(`${node.url}/livez`)).status).toBe(200);
  expect((await fetch(`${node.url}/readyz`)).status).toBe(503);
  const postgres = await startPostgres(port);
  await node.serves();
  await until(async () => (await fetch(`${node.url}/readyz`)).ok, 20_000, "the node to be ready");
  const events = linesOf(node.err());
  expect(events.filter(({ event }) => event === "database_awaited").map(({ worker }) => worker)).toEqual([1]);
  expect(events.filter(({ event }) => event === "worker_lost")).toEqual([]);
  expect(await node.stops()).toBe(0);
  await postgres.stop();
});

for (const workers of ["1", "2"]) {
  test(`SIGTERM ends a wait at once, with 0: ${workers} workers`, async () => {
    const env = {
      DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
      REDIS_URL: await redisUrl(),
      SLUICE_WORKERS: workers,
    };
    const node = await started(env);
    await node.waits();
    const asked = performance.now();
    expect(await node.stops()).toBe(0);
    expect(performance.now() - asked).toBeLessThan(5_000);
  });
}

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

test.each([
  ["0s", 0],
  ["2s", 2],
] as const)("--wait-for-database %s ends with the reason", async (duration, wait_s) => {
  const began = performance.now();
  const node = await started({ DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" }, "--wait-for-database", duration);
  expect(await node.ends()).toBe(1);
  expect(performance.now() - began).toBeGreaterThan(wait_s * 1000);
  expect(node.err()).toContain("sluice: cannot use the database at 127.0.0.1:1/none: 127.0.0.1:1 refuses connections");
  if (wait_s === 0) expect(node.err()).not.toContain("database_awaited");
});

test("SLUICE_WAIT_FOR_DATABASE_MS says the same, to workers too", async () => {
  const away = { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none", SLUICE_WAIT_FOR_DATABASE_MS: "0" };
  for (const more of [{}, { SLUICE_WORKERS: "2", REDIS_URL: await redisUrl() }] as Record<string, string>[]) {
    const node = await started({ ...away, ...more });
    expect(await node.ends()).toBe(1);
    expect(node.err()).toStartWith("sluice: cannot use the database at 127.0.0.1:1/none");
  }
});

test("a name that nobody knows is waited for, and so are too many connections, until one is free", async () => {
  const nameless = await started({ DATABASE_URL: "postgres://nobody@no-such-host.invalid/none" });
  await nameless.waits();
  expect(nameless.err()).toContain("no-such-host.invalid:5432");
  expect(await nameless.stops()).toBe(0);

  const postgres = await startPostgres(undefined, () => ["max_connections=20"]);
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
  await postgres.stop();
});

test("what somebody has to mend ends the start at once: password, user, database, TLS, a schema that it does not know", async () => {
  const postgres = await startPostgres(undefined, (data) => {
    const hba = join(data, "pg_hba.conf");
    const own = "host all guarded 127.0.0.1/32 scram-sha-256\nhost all barred 127.0.0.1/32 reject\n";
    writeFileSync(hba, own + readFileSync(hba, "utf8"));
    return [];
  });
  const sql = await serverDatabase(postgres.url);
  await sql.exec("create role guarded login password 'right'; create role barred login");
  await sql.exec("create database later");
  await sql.close();
  const later = await serverDatabase(postgres.url.replace(/postgres$/, "later"));
  const { migrate } = await import("../../db/migrate.ts");
  await migrate(later, [...migrations, { name: "9999_of_tomorrow", sql: "select 1" }]);
  await later.close();
  const { host } = new URL(postgres.url);
  const ended = async (address: string) => {
    const node = await started({ DATABASE_URL: address });
    const code = await node.ends();
    return { code, waited: node.err().includes("database_awaited"), says: node.err().trim() };
  };
  const cases: [address: string, says: string][] = [
    [`postgres://guarded:wrong@${host}/postgres`, "password authentication failed"],
    [`postgres://barred@${host}/postgres`, "pg_hba.conf rejects"],
    [`postgres://postgres@${host}/nowhere`, '"nowhere" does not exist'],
    [`postgres://postgres@${host}/postgres?sslmode=require`, "does not offer TLS"],
    [`postgres://postgres@${host}/postgres?sslmode=perhaps`, "sslmode is none of"],
    [`postgres://postgres@${host}/later`, "newer than this build"],
  ];
  for (const [address, says] of cases) {
    const end = await ended(address);
    expect(end).toEqual({ code: 1, waited: false, says: expect.stringContaining(says) });
  }
  await postgres.stop();
});

test("a port that somebody has ends a start that would wait", async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  const { port } = taken.address() as { port: number };
  const node = await started({ DATABASE_URL: "postgres://nobody@127.0.0.1:1/none", PORT: `${port}` });
  expect(await node.ends()).toBe(1);
  expect(node.err()).toContain(`${port}`);
  taken.close();
});

test("over TLS it waits with its certificate, and hands the port over", async () => {
  const files = written(folder, "node", authority().issue(["127.0.0.1"]));
  const port = await freePort();
  const node = await started({
    DATABASE_URL: `postgres://postgres@127.0.0.1:${port}/postgres`,
    SLUICE_TLS_CERTIFICATE_FILE: files.certificate,
    SLUICE_TLS_KEY_FILE: files.key,
  });
  await node.waits();
  const secure = `${node.url.replace("http:", "https:")}/readyz`;
  const asked = () => fetch(secure, { tls: { rejectUnauthorized: false } }).then(({ status }) => status);
  expect(await asked()).toBe(503);
  const postgres = await startPostgres(port);
  await node.serves();
  expect(await asked()).toBe(200);
  expect(await node.stops()).toBe(0);
  await postgres.stop();
});

test("the log says every 30 seconds that a node still waits", async () => {
  const node = await patient;
  const awaited = () => linesOf(node.err()).filter(({ event }) => event === "database_awaited");
  await until(() => awaited().length > 1, 60_000, "a second line");
  const [, second] = awaited() as { waited_s: number }[];
  expect(second!.waited_s).toBeWithin(30, 40);
  expect(await node.stops()).toBe(0);
});
