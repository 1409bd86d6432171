// What the benches that measure a request stand on: a node on Postgres and Redis, a process that only passes requests on,
// and the CPU of a process.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freshDatabase, redisUrl } from "../test/harness/services.ts";
import { until } from "../test/harness/until.ts";

const root = join(import.meta.dir, "..");
const ticks_a_second = 100;

/** The commands of this service and, with TEST_SLUICE_BEFORE, of an older binary. */
export function programs(): { now: string[]; before: string[] | null } {
  const { TEST_SLUICE: now, TEST_SLUICE_BEFORE: before } = process.env;
  return { now: now ? [now] : [process.execPath, join(root, "src/main.ts")], before: before ? [before] : null };
}

/** A node with a database of its own, and a key of an organization for each plan: without limits (`off`), with all (`on`). */
export async function startNode(words: string[], enginePort: number) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  const database = await freshDatabase();
  writeFileSync(join(folder, "sluice.yaml"), configuration(enginePort));
  const env = {
    PATH: process.env.PATH ?? "",
    PORT: "0",
    DATABASE_URL: database.url,
    REDIS_URL: await redisUrl(),
    SLUICE_CONFIG: join(folder, "sluice.yaml"),
    BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
  };
  const node = Bun.spawn([...words, "serve"], { cwd: folder, env, stdout: "pipe", stderr: "ignore" });
  let out = "";
  void (async () => {
    for await (const chunk of node.stdout) out += new TextDecoder().decode(chunk);
  })();
  await until(() => out.includes("serving on"), 30_000, "the node");
  const cli = async <T>(...command: string[]): Promise<T> => {
    const run = Bun.spawn([...words, ...command, "--json"], { cwd: folder, env, stdout: "pipe", stderr: "inherit" });
    return JSON.parse(await run.stdout.text()) as T;
  };
  const keys: Record<string, string> = {};
  for (const plan of ["off", "on"]) {
    await cli("org", "create", plan, "--plan", plan);
    keys[plan] = (await cli<{ key: string }>("key", "create", "--org", plan, "--name", "bench")).key;
  }
  return {
    pid: node.pid,
    url: /serving on (\S+)/.exec(out)![1]!,
    keys,
    async stop() {
      node.kill("SIGTERM");
      await node.exited;
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const configuration = (enginePort: number) => `upstreams:
  main: { url: "http://127.0.0.1:${enginePort}/v1" }
models:
  - { id: acme/m, created: 1, context_window: 131072, max_output_tokens: 16384, capabilities: [tools, parallel_tools], prices: { input: 1, output: 1 }, routes: [{ upstream: main, model: m }] }
plans:
  off: {}
  on: { session: 1000000000000, week: 1000000000000, month: 1000000000000, requests_per_minute: 1000000, tokens_per_minute: 1000000000, concurrent_requests: 10000 }
`;

/** The least that a gateway of this runtime does: no key, no metering, no look at the body. */
export async function startPasser(engineUrl: string) {
  const program = `const server = Bun.serve({ port: 0, async fetch(request) {
    const path = new URL(request.url).pathname;
    return fetch("${engineUrl}" + path, { method: "POST", body: await request.bytes() });
  } });
  console.log(server.url.origin);`;
  const env = { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" };
  const child = Bun.spawn([process.execPath, "-e", program], { env, stdout: "pipe", stderr: "inherit" });
  const { value } = await child.stdout.getReader().read();
  return { pid: child.pid, url: new TextDecoder().decode(value).trim(), kill: () => child.kill() };
}

/** User and system time of a process until now. */
export function cpu_us(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1e6) / ticks_a_second;
}

/** Without a key the engine is asked, directly or through the process that passes on. */
export function post(url: string, key: string, body: string): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body,
  });
}
