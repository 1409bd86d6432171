// hardcap on Redis. The program is `hardcap` in a Python environment.

import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Gateway, Key } from "../gateway.ts";
import { answers, ask, freePort, output, start } from "../processes.ts";
import { redis } from "../stores.ts";

export const hardcap: Gateway = {
  name: "hardcap",
  variable: "GOVERNED_HARDCAP",
  settings: "Redis; each tenant has one key, an output budget of 30 days and a rate; usage is in Redis",
  has: { budget: true, rate: true, usage: true },
  version: (program) =>
    output([join(dirname(program), "python"), "-c", "import importlib.metadata as m; print(m.version('hardcap'))"]),
  async start(program, { folder, engine_url, requested }) {
    const store = await redis(folder);
    const port = await freePort();
    const tenants = requested.map(({ name, limits }) => [
      name,
      {
        api_keys: [`sk-${name}`],
        budget: { window_s: 2_592_000, output: limits.output_tokens },
        rate_limit: { requests: limits.requests_per_minute, per_s: 60 },
      },
    ]);
    // The configuration is written as JSON, which is valid YAML.
    const configuration = JSON.stringify({
      redis_url: `${store.url}/0`,
      upstreams: { engine: { base_url: `${engine_url}/v1` } },
      routes: { governed: { targets: [{ upstream: "engine", model: "governed" }] } },
      tenants: Object.fromEntries(tenants),
    });
    writeFileSync(join(folder, "hardcap.yaml"), configuration);
    const words = [program, "serve", "-c", join(folder, "hardcap.yaml"), "--host", "127.0.0.1", "--port", `${port}`];
    const base = `http://127.0.0.1:${port}`;
    const node = await start(words, { folder, isReady: () => answers(`${base}/healthz`), ready_ms_max: 180_000 });
    return {
      ...{ url: `${base}/v1`, model: "governed" },
      keys: requested.map(({ name }) => ({ id: name, secret: `sk-${name}` })),
      pids: { gateway: node.pid, stores: [store.pid] },
      usage: (keys) => usageOf(keys, base),
      async stop() {
        await node.stop();
        await store.stop();
      },
    };
  },
};

async function usageOf(keys: readonly Key[], base: string) {
  let output_tokens = 0;
  for (const { secret } of keys) {
    const headers = { authorization: `Bearer ${secret}` };
    const { used } = (await ask("GET", `${base}/v1/hardcap/usage`, headers)) as { used: { output: number } };
    output_tokens += used.output;
  }
  return { output_tokens };
}
