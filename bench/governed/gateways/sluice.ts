// Sluice on Postgres and Redis. The program is the executable of `npm run build`.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { eachKey, type Gateway, type Key, type Setup } from "../gateway.ts";
import { answers, ask, freePort, output, start } from "../processes.ts";
import { postgres, redis } from "../stores.ts";

export const sluice: Gateway = {
  name: "Sluice",
  variable: "GOVERNED_SLUICE",
  settings:
    "Postgres and Redis; each key has a limit of the month in money, and of requests a minute; usage is in Postgres",
  has: { budget: true, rate: true, usage: true },
  version: async (program) => (await output([program, "--version"])).replace(/ \(schema .*\)$/, ""),
  async start(program, setup) {
    const { folder, engine_url } = setup;
    const stores = [await postgres(folder), await redis(folder)];
    const [port, operator_port] = [await freePort(), await freePort()];
    writeFileSync(join(folder, "sluice.yaml"), configuration(engine_url));
    const environment = {
      ...{ PORT: `${port}`, SLUICE_OPERATOR_PORT: `${operator_port}`, SLUICE_CONFIG: join(folder, "sluice.yaml") },
      ...{ DATABASE_URL: stores[0]!.url, REDIS_URL: stores[1]!.url, SLUICE_DATA_DIR: join(folder, "data") },
    };
    const isReady = () => answers(`http://127.0.0.1:${port}/readyz`);
    const node = await start([program, "serve"], { environment, folder, isReady, ready_ms_max: 120_000 });
    const operator = await output([program, "operator", "create", "bench", "--role", "admin", "--json"], environment);
    const headers = { authorization: `Bearer ${(JSON.parse(operator) as { token: string }).token}` };
    const management = `http://127.0.0.1:${operator_port}/management/v1`;
    await ask("POST", `${management}/organizations`, headers, { slug: "bench", plan: "unlimited" });
    return {
      ...{ url: `http://127.0.0.1:${port}/v1`, model: "bench/governed" },
      keys: await keysOf(setup, management, headers),
      pids: { gateway: node.pid, stores: stores.map(({ pid }) => pid) },
      usage: (keys) => usageOf(keys, management, headers),
      async stop() {
        await node.stop();
        await Promise.all(stores.map((store) => store.stop()));
      },
    };
  },
};

/** The configuration, written as JSON, which is valid YAML. A million output tokens cost one unit of the currency. */
function configuration(engine_url: string): string {
  const model = {
    ...{ id: "bench/governed", created: 1_790_000_000, context_window: 131_072, max_output_tokens: 16_384 },
    ...{ prices: { input: 0, output: 1 }, routes: [{ upstream: "engine", model: "governed" }] },
  };
  return JSON.stringify({
    upstreams: { engine: { url: `${engine_url}/v1` } },
    models: [model],
    metering: { currency: "USD" },
  });
}

function keysOf(setup: Setup, management: string, headers: Record<string, string>): Promise<Key[]> {
  return eachKey(setup, async ({ name, limits }) => {
    const { output_tokens, requests_per_minute } = limits;
    const body = { organization: "bench", name, limits: { month: `${output_tokens / 1e6}`, requests_per_minute } };
    const made = (await ask("POST", `${management}/keys`, headers, body)) as { id: string; key: string };
    return { id: made.id, secret: made.key };
  });
}

async function usageOf(keys: readonly Key[], management: string, headers: Record<string, string>) {
  const url = `${management}/usage/report?by=key&organization=bench`;
  const { rows } = (await ask("GET", url, headers)) as { rows: { key_id: string; output_tokens: number }[] };
  const byKey = new Map(rows.map(({ key_id, output_tokens }) => [key_id, output_tokens]));
  return { output_tokens: keys.reduce((sum, { id }) => sum + (byKey.get(id) ?? 0), 0) };
}
