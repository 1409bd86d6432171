// Busbar and Bifrost with a key, a budget and limits by the minute, none of which is reached: from executables that
// TEST_BUSBAR and TEST_BIFROST name. Both keep their books in memory or in a file of their own.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { freePort } from "../../test/harness/daemon.ts";
import { until } from "../../test/harness/until.ts";
import { type Behaviour, modelOf, type Protocol } from "./asks.ts";
import { pinned } from "./process.ts";
import { names } from "./scenarios.ts";
import { answers, ended, type Target } from "./targets.ts";

export interface Gateway {
  engineUrl: string;
  behaviours: readonly Behaviour[];
}

const most = 1_000_000_000;
const start_ms = 60_000;
const isOthers = { isOthers: true, translates: false, speaks: ["chat"] as const };

/** Null where no executable is named. */
export async function startBusbar(gateway: Gateway, program = process.env.TEST_BUSBAR): Promise<Target | null> {
  if (!program) return null;
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-busbar-"));
  const [port, adminPort] = [await freePort(), await freePort()];
  const files = { config: join(folder, "config.yaml"), providers: join(folder, "providers.yaml") };
  writeFileSync(files.config, busbarConfiguration(port, adminPort, gateway.behaviours));
  const engine = { protocol: "openai", base_url: gateway.engineUrl, error_map: {} };
  writeFileSync(files.providers, JSON.stringify({ engine }));
  const env = {
    ...{ PATH: process.env.PATH ?? "", HOME: folder, BENCH_ENGINE_KEY: "bench", BUSBAR_WORKER_THREADS: "1" },
    // What it keeps of one run would change the next.
    ...{ BUSBAR_CONFIG: files.config, BUSBAR_PROVIDERS: files.providers, BUSBAR_STATE_FILE: "" },
  };
  const child = Bun.spawn(pinned([resolve(program)]), { cwd: folder, env, stdout: "ignore", stderr: "ignore" });
  const url = `http://127.0.0.1:${port}`;
  await until(() => answers(url), start_ms, "Busbar");
  const key = await busbarKey(`http://127.0.0.1:${adminPort}`);
  return {
    ...{ name: names.busbar, pid: child.pid, url, ...isOthers },
    modelFor: (_: Protocol, behaviour: Behaviour) => modelOf(behaviour),
    headers: { authorization: `Bearer ${key}` },
    stop: () => ended(child, folder),
  };
}

const adminToken = "bench-admin";

/** JSON is YAML. With an administrator's token each request needs a key that was made by it. */
function busbarConfiguration(port: number, adminPort: number, behaviours: readonly Behaviour[]): string {
  const model = { provider: "engine", max_concurrent: 16_384, max_requests: -1 };
  const models = behaviours.map((behaviour) => modelOf(behaviour));
  return JSON.stringify({
    ...{ listen: `127.0.0.1:${port}`, admin_listen: `127.0.0.1:${adminPort}` },
    auth: { chain: ["tokens"], upstream_credentials: "own", client_tokens: ["bench"] },
    governance: { admin_token: adminToken },
    providers: { engine: { api_key_env: "BENCH_ENGINE_KEY" } },
    models: Object.fromEntries(models.map((name) => [name, model])),
    pools: Object.fromEntries(models.map((name) => [`${name}-pool`, { members: [{ target: name }] }])),
  });
}

async function busbarKey(adminUrl: string): Promise<string> {
  const limits = { max_budget_cents: most, budget_period: "monthly", rpm_limit: most, tpm_limit: most };
  await until(() => answers(adminUrl), start_ms, "Busbar's administration");
  const response = await fetch(`${adminUrl}/api/v1/admin/keys`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-admin-token": adminToken },
    body: JSON.stringify({ name: "bench", ...limits }),
  });
  const text = await response.text();
  const { secret } = (response.ok ? JSON.parse(text) : {}) as { secret?: string };
  if (!secret) throw new Error(`Busbar made no key: ${response.status} ${text.slice(0, 300)}`);
  return secret;
}

/** Null where no executable is named. */
export async function startBifrost(gateway: Gateway, program = process.env.TEST_BIFROST): Promise<Target | null> {
  if (!program) return null;
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-bifrost-"));
  const port = await freePort();
  writeFileSync(join(folder, "config.json"), bifrostConfiguration(gateway.engineUrl));
  const words = ["-app-dir", folder, "-host", "127.0.0.1", "-port", `${port}`, "-log-level", "error"];
  const env = { PATH: process.env.PATH ?? "", HOME: folder, GOMAXPROCS: "1" };
  const child = Bun.spawn(pinned([resolve(program), ...words]), {
    ...{ cwd: folder, env, stdout: "ignore", stderr: "ignore" },
  });
  const url = `http://127.0.0.1:${port}`;
  await until(() => answers(url), start_ms, "Bifrost");
  return {
    ...{ name: names.bifrost, pid: child.pid, url, ...isOthers },
    modelFor: (_: Protocol, behaviour: Behaviour) => `openai/${modelOf(behaviour)}`,
    headers: { authorization: `Bearer ${bifrostKey}` },
    stop: () => ended(child, folder),
  };
}

const bifrostKey = "sk-bf-bench";

function bifrostConfiguration(engineUrl: string): string {
  const allowed = { provider: "openai", allowed_models: ["*"], key_ids: ["*"], weight: 1 };
  const perMinute = {
    ...{ request_max_limit: most, request_reset_duration: "1m" },
    ...{ token_max_limit: most, token_reset_duration: "1m" },
  };
  const key = {
    ...{ id: "bench", name: "bench", value: bifrostKey, is_active: true, rate_limit_id: "minute" },
    provider_configs: [allowed],
  };
  return JSON.stringify({
    client: { enforce_auth_on_inference: true, enable_logging: false },
    config_store: { enabled: true, type: "sqlite", config: { path: "./config.db" } },
    logs_store: { enabled: false },
    providers: {
      openai: {
        keys: [{ name: "engine", value: "bench", models: ["*"], weight: 1 }],
        network_config: { base_url: engineUrl },
      },
    },
    governance: {
      budgets: [{ id: "month", max_limit: most, reset_duration: "1M", virtual_key_id: "bench" }],
      rate_limits: [{ id: "minute", ...perMinute }],
      virtual_keys: [key],
    },
  });
}
