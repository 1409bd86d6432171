// LiteLLM's proxy with one worker, and virtual keys in Postgres. The program is `litellm` in a Python environment.
// LiteLLM creates its tables with Prisma's programs. If those are not available, GOVERNED_LITELLM_SCHEMA names a SQL
// file that creates the tables; environment variables whose names begin with PRISMA_ or LITELLM_ are passed on to
// LiteLLM.

import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { eachKey, type Gateway, type Key, type Setup } from "../gateway.ts";
import { answers, ask, freePort, output, start } from "../processes.ts";
import { postgres } from "../stores.ts";

const headers = { authorization: "Bearer sk-bench-master" };

export const litellm = named("LiteLLM", "one worker, Postgres", {});
export const litellmRust = named("LiteLLM with LITELLM_RUST", "one worker, Postgres, LITELLM_RUST=true", {
  LITELLM_RUST: "true",
});

function named(name: string, how: string, switches: Record<string, string>): Gateway {
  return {
    name,
    variable: "GOVERNED_LITELLM",
    settings: `${how}; each virtual key has max_budget for 30 days, rpm_limit and tpm_limit; spend is in Postgres`,
    has: { budget: true, rate: true, usage: true },
    version: (program) =>
      output([join(dirname(program), "python"), "-c", "import importlib.metadata as m; print(m.version('litellm'))"]),
    start: (program, setup) => started(program, setup, switches),
  };
}

async function started(program: string, setup: Setup, switches: Record<string, string>) {
  const { folder, engine_url } = setup;
  const store = await postgres(folder);
  const schema = process.env.GOVERNED_LITELLM_SCHEMA;
  if (schema) await output(["psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", schema, store.url]);
  const port = await freePort();
  writeFileSync(join(folder, "litellm.yaml"), configuration(engine_url));
  const passed = Object.entries(process.env).filter(([name]) => /^(PRISMA|LITELLM)_/.test(name)) as [string, string][];
  const environment = {
    ...Object.fromEntries(passed),
    // LiteLLM searches this folder for Prisma's programs and its own.
    ...{ PATH: `${dirname(program)}:${process.env.PATH}`, DATABASE_URL: store.url },
    ...(schema ? { DISABLE_SCHEMA_UPDATE: "true", ENFORCE_PRISMA_MIGRATION_CHECK: "false" } : {}),
    ...{ LITELLM_LOCAL_MODEL_COST_MAP: "True", ...switches },
  };
  const words = [program, "--config", join(folder, "litellm.yaml"), "--port", `${port}`, "--host", "127.0.0.1"];
  const base = `http://127.0.0.1:${port}`;
  const isReady = () => answers(`${base}/health/readiness`);
  const node = await start(words, { environment, folder, isReady, ready_ms_max: 300_000 });
  return {
    ...{ url: `${base}/v1`, model: "governed", keys: await keysOf(setup, base) },
    pids: { gateway: node.pid, stores: [store.pid] },
    usage: (keys: readonly Key[]) => usageOf(keys, base),
    async stop() {
      await node.stop();
      await store.stop();
    },
  };
}

/** The configuration is written as JSON, which is valid YAML. */
function configuration(engine_url: string): string {
  const engine = {
    ...{ model: "openai/governed", api_base: `${engine_url}/v1`, api_key: "none" },
    ...{ input_cost_per_token: 0, output_cost_per_token: 1 },
  };
  return JSON.stringify({
    model_list: [{ model_name: "governed", litellm_params: engine }],
    general_settings: { master_key: "sk-bench-master" },
  });
}

function keysOf(setup: Setup, base: string): Promise<Key[]> {
  return eachKey(setup, async ({ name, limits }) => {
    const { output_tokens: max_budget, requests_per_minute: rpm_limit } = limits;
    const body = { key_alias: name, max_budget, budget_duration: "30d", rpm_limit, tpm_limit: 1_000_000_000 };
    const { key } = (await ask("POST", `${base}/key/generate`, headers, body)) as { key: string };
    return { id: key, secret: key };
  });
}

async function usageOf(keys: readonly Key[], base: string) {
  let output_tokens = 0;
  for (const { id } of keys) {
    const { info } = (await ask("GET", `${base}/key/info?key=${id}`, headers)) as { info: { spend: number } };
    output_tokens += info.spend;
  }
  return { output_tokens };
}
