// Busbar 1.5 with its built-in memory store. The program is `busbar`.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { eachKey, type Gateway, type Key, type Setup, TooSlow } from "../gateway.ts";
import { answers, ask, freePort, output, pause, start } from "../processes.ts";

const token = "bench-admin-token";
const headers = { "x-admin-token": token };

export const busbar: Gateway = {
  name: "Busbar",
  variable: "GOVERNED_BUSBAR",
  settings: "in memory; each key has a group of its own with a budget of the month, requests and tokens a minute",
  has: { budget: true, rate: true, usage: true },
  version: async (program) => (await output([program, "--version"])).replace("busbar ", ""),
  async start(program, setup) {
    const { folder, engine_url } = setup;
    const [port, admin_port] = [await freePort(), await freePort()];
    const files = { config: join(folder, "config.yaml"), providers: join(folder, "providers.yaml") };
    const signing_key = join(folder, "signing.key");
    writeFileSync(signing_key, await output([program, "--generate-signing-key"]));
    writeFileSync(files.config, configuration(setup, { port, admin_port, signing_key }));
    writeFileSync(files.providers, JSON.stringify({ engine: { protocol: "openai", base_url: engine_url } }));
    const environment = {
      ...{ BUSBAR_CONFIG: files.config, BUSBAR_PROVIDERS: files.providers },
      ...{ BUSBAR_ADMIN_TOKEN: token, BENCH_ENGINE_KEY: "none" },
    };
    const isReady = () => answers(`http://127.0.0.1:${admin_port}/api/v1/admin/keys`);
    const node = await start([...(setup.wrapper ?? []), program], {
      environment,
      folder,
      isReady,
      ready_ms_max: 60_000,
    });
    const admin = `http://127.0.0.1:${admin_port}/api/v1/admin`;
    return {
      ...{ url: `http://127.0.0.1:${port}/v1`, model: "governed", keys: await keysOf(setup, admin) },
      pids: { gateway: node.pid, stores: [] },
      usage: (keys) => usageOf(keys, admin),
      stop: () => node.stop(),
    };
  },
};

interface Places {
  port: number;
  admin_port: number;
  signing_key: string;
}

/**
 * The configuration, written as JSON, which is valid YAML. Budgets are in cents, and prices in millionths of a dollar
 * per token. An output token costs 10,000 millionths, which is a cent, so a budget in cents equals a number of output
 * tokens.
 */
function configuration({ requested, models = ["governed"] }: Setup, { port, admin_port, signing_key }: Places): string {
  const groups = requested.map(({ name, limits }) => [
    name,
    {
      limits: [
        { requests: limits.requests_per_minute, per: "minute" },
        { tokens: 1_000_000_000_000, per: "minute" },
        { budget: limits.output_tokens, per: "month" },
      ],
    },
  ]);
  const each = <Value>(value: Value) => Object.fromEntries(models.map((model) => [model, value]));
  return JSON.stringify({
    ...{ listen: `127.0.0.1:${port}`, admin_listen: `127.0.0.1:${admin_port}` },
    "identity-providers": { "admin-tokens": { module: "admin-tokens", token: { env: "BUSBAR_ADMIN_TOKEN" } } },
    auth: { signing_key: { file: signing_key }, chain: ["keys"], admin_auth: ["admin-tokens"] },
    groups: Object.fromEntries(groups),
    rate_card: each({ input_utok: 0, output_utok: 10_000 }),
    store: { module: "memory" },
    providers: { engine: { api_key: { env: "BENCH_ENGINE_KEY" } } },
    models: each({ provider: "engine" }),
    pools: { upstream_credentials: "own" },
  });
}

function keysOf(setup: Setup, admin: string): Promise<Key[]> {
  const end_ms = Date.now() + setup.keys_ms_max;
  return eachKey(setup, async ({ name }) => {
    const { id, token } = (await patiently(end_ms, () =>
      ask("POST", `${admin}/keys`, headers, { name, group: name }),
    )) as { id: string; token: string };
    return { id, secret: token };
  });
}

/** Repeats `act` while Busbar's rate limit refuses it: Busbar creates at most sixty keys a minute. */
async function patiently(end_ms: number, act: () => Promise<unknown>): Promise<unknown> {
  while (true) {
    const made = await act().catch((failure: Error) => failure);
    if (!(made instanceof Error)) return made;
    if (!made.message.includes("rate limit exceeded")) throw made;
    if (Date.now() > end_ms) throw new TooSlow("its interface makes 60 keys a minute at most");
    await pause(5_000);
  }
}

async function usageOf(keys: readonly Key[], admin: string) {
  let output_tokens = 0;
  for (const { id } of keys) {
    const { spend_cents } = (await ask("GET", `${admin}/keys/${id}/usage`, headers)) as { spend_cents: number };
    output_tokens += spend_cents;
  }
  return { output_tokens };
}
