// any-llm-gateway on Postgres. Its program: `any-llm-gateway` of a Python environment with any-llm-sdk[gateway,openai] 1.14.0,
// the last version that has it.

import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { eachKey, type Gateway, type Key, type Setup } from "../gateway.ts";
import { answers, ask, freePort, output, start } from "../processes.ts";
import { postgres } from "../stores.ts";

const model = "openai:governed";
const headers = { authorization: "Bearer bench-master" };

export const anyLlm: Gateway = {
  name: "any-llm's gateway",
  variable: "GOVERNED_ANY_LLM",
  settings: "Postgres; each key has a user with a budget; the rate is one for all users, so it is on and never reached",
  has: { budget: true, rate: false, usage: true },
  version: (program) =>
    output([join(dirname(program), "python"), "-c", "import importlib.metadata as m; print(m.version('any-llm-sdk'))"]),
  async start(program, setup) {
    const { folder, engine_url } = setup;
    const store = await postgres(folder);
    const port = await freePort();
    const configuration = JSON.stringify({
      ...{ database_url: store.url.replace("postgres:", "postgresql+psycopg2:"), master_key: "bench-master" },
      ...{ bootstrap_api_key: false, rate_limit_rpm: 1_000_000 },
      providers: { openai: { api_base: `${engine_url}/v1`, api_key: "none" } },
      pricing: { [model]: { input_price_per_million: 0, output_price_per_million: 1_000_000 } },
    });
    writeFileSync(join(folder, "any-llm.yaml"), configuration);
    const words = [program, "serve", "-c", join(folder, "any-llm.yaml"), "--host", "127.0.0.1", "--port", `${port}`];
    const base = `http://127.0.0.1:${port}`;
    const isReady = () => answers(`${base}/health/liveness`);
    const node = await start(words, { folder, isReady, ready_ms_max: 180_000 });
    return {
      ...{ url: `${base}/v1`, model, keys: await keysOf(setup, `${base}/v1`) },
      pids: { gateway: node.pid, stores: [store.pid] },
      usage: (keys) => usageOf(keys, `${base}/v1`),
      async stop() {
        await node.stop();
        await store.stop();
      },
    };
  },
};

function keysOf(setup: Setup, api: string): Promise<Key[]> {
  return eachKey(setup, async ({ name, limits }) => {
    const budget = { max_budget: limits.output_tokens, budget_duration_sec: 2_592_000 };
    const { budget_id } = (await ask("POST", `${api}/budgets`, headers, budget)) as { budget_id: string };
    await ask("POST", `${api}/users`, headers, { user_id: name, budget_id });
    const { key } = (await ask("POST", `${api}/keys`, headers, { key_name: name, user_id: name })) as { key: string };
    return { id: name, secret: key };
  });
}

async function usageOf(keys: readonly Key[], api: string) {
  let output_tokens = 0;
  for (const { id } of keys) {
    const { spend } = (await ask("GET", `${api}/users/${id}`, headers)) as { spend: number };
    output_tokens += spend;
  }
  return { output_tokens };
}
