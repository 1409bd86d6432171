/** A node with several workers that cannot start prints the reason once, and exits with code 1. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfiguration } from "../../../src/config/load.ts";
import { freePort } from "../../harness/daemon.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { redisUrl } from "../../harness/services.ts";
import { program } from "../../harness/sluice.ts";

setDefaultTimeout(60_000);

async function failed(env: Record<string, string>, ...words: string[]) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-workers-"));
  writeFileSync(join(folder, "bad.yaml"), "upstreams: { main: { url: http://127.0.0.1, urll: x } }\n");
  const all = { PATH: process.env.PATH ?? "", HOME: folder, PORT: "0", SLUICE_DATA_DIR: join(folder, "data"), ...env };
  const child = Bun.spawn([...program, "serve", ...words], { cwd: folder, env: all, stdout: "pipe", stderr: "pipe" });
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  rmSync(folder, { recursive: true, force: true });
  return { code, stdout, lines: stderr.trimEnd().split("\n") };
}

const postgres = "postgres://nobody@127.0.0.1:1/none";
const redis = "redis://127.0.0.1:1";

const unset = "set it, or remove the setting";
const needsPostgres = `needs Postgres (DATABASE_URL), because the embedded database belongs to one process: ${unset}`;
const needsRedis = `needs Redis (REDIS_URL), because processes that share a port must count rates together: ${unset}`;
const isNoNumber = (text: string) => `SLUICE_WORKERS must be auto, or a whole number from 1 to 64, not "${text}"`;

test.each([
  [{ SLUICE_WORKERS: "2" }, `SLUICE_WORKERS ${needsPostgres}`],
  [{ SLUICE_WORKERS: "auto" }, `SLUICE_WORKERS ${needsPostgres}`],
  [{ SLUICE_WORKERS: "2", DATABASE_URL: postgres }, `SLUICE_WORKERS ${needsRedis}`],
  [{ SLUICE_CONFIG: "workers.yaml" }, `server.workers ${needsPostgres}`],
  ...["0", "65", "-2", "two"].map((workers) => [{ SLUICE_WORKERS: workers }, isNoNumber(workers)] as const),
])("%j", (env, why) => {
  const readFile = (path: string) => (path === "workers.yaml" ? Buffer.from("server: { workers: 4 }\n") : null);
  const found = loadConfiguration({ env: env as unknown as Record<string, string>, readFile });
  expect(found).toMatchObject({ problems: [why] });
});

test("a configuration that cannot be used is told of once, whatever the number of workers", async () => {
  const env = { SLUICE_WORKERS: "2", DATABASE_URL: postgres, REDIS_URL: redis, SLUICE_CONFIG: "bad.yaml" };
  const { code, stdout, lines } = await failed(env);
  const why = "bad.yaml:1:45: upstreams.main.urll: is not a known field; did you mean 'url'?";
  expect(lines).toEqual([`sluice: The configuration cannot be used: ${why}`]);
  expect([code, stdout]).toEqual([1, ""]);
});

test("a database that is not waited for is said once, whatever the number of workers", async () => {
  const { code, lines } = await failed(
    { SLUICE_WORKERS: "8", DATABASE_URL: postgres, REDIS_URL: redis },
    "--wait-for-database",
    "0s",
  );
  expect(lines).toEqual([expect.stringMatching(/^sluice: cannot use the database at .*127\.0\.0\.1:1/)]);
  expect(code).toBe(1);
});

test("a port that somebody has is not shared with them", async () => {
  const database = await migratedDatabase();
  const taken = Bun.serve({
    port: await freePort(),
    hostname: "127.0.0.1",
    reusePort: true,
    fetch: () => new Response(),
  });
  const env = { SLUICE_WORKERS: "2", DATABASE_URL: database.url, REDIS_URL: await redisUrl() };
  const { code, lines } = await failed({ ...env, PORT: String(taken.port) });
  expect(lines).toEqual([expect.stringContaining(String(taken.port))]);
  expect(code).toBe(1);
  await taken.stop(true);
  await database.drop();
});

test("nobody starts a worker by hand", async () => {
  const { code, lines } = await failed({}, "--worker", "1");
  expect(lines).toEqual(["sluice: --worker is for processes that sluice serve starts itself; set SLUICE_WORKERS"]);
  expect(code).toBe(1);
});

test("one worker is one process: nothing else is started, on any database", async () => {
  const { code, lines } = await failed({ SLUICE_WORKERS: "1", DATABASE_URL: postgres }, "--wait-for-database", "0s");
  expect(lines).toEqual([expect.stringMatching(/^sluice: cannot use the database/)]);
  expect(code).toBe(1);
});
