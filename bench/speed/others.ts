// Starts other gateways. For `--others`: pinned versions from their packages, which are downloaded into .cache, with
// everything turned off except passing requests on. For TEST_BUSBAR: Busbar with limits.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pythonWith, succeed } from "../../test/clients/virtual-environment.ts";
import { freePort } from "../../test/harness/daemon.ts";
import { until } from "../../test/harness/until.ts";
import { unlimited } from "../governed/checks.ts";
import { busbar } from "../governed/gateways/busbar.ts";
import { type Behaviour, modelOf, type Protocol } from "./asks.ts";
import { pinned } from "./process.ts";
import { behaviours, names } from "./scenarios.ts";
import { answers, type Target } from "./targets.ts";

/** The requirements file with LiteLLM's packages. */
const requirements = join(import.meta.dir, "litellm.txt");
export const versions = {
  portkey: "1.15.2",
  litellm: /^litellm==(.+)$/m.exec(readFileSync(requirements, "utf8"))![1]!,
};
/**
 * The version of the package that Portkey uses as its HTTP server. With later versions, Portkey responds to every
 * stream with a 500, because it appends to immutable headers.
 */
const nodeServerVersion = "1.14.1";
const folder = ".cache/bench";
const start_ms = 300_000;

export async function startPortkey(engineUrl: string): Promise<Target> {
  const { url, child } = await portkey();
  return {
    ...{ name: names.portkey, pid: child.pid, url, modelFor: engineModel, ...passes },
    headers: {
      authorization: "Bearer bench",
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `${engineUrl}/v1`,
    },
    stop: () => ended(child),
  };
}

/** Starts LiteLLM with a master key and without a database. */
export async function startLitellm(engineUrl: string): Promise<Target> {
  const engine = { model: "openai/*", api_base: `${engineUrl}/v1`, api_key: "bench" };
  const { url, child } = await litellm({
    model_list: [{ model_name: "*", litellm_params: engine }],
    general_settings: { master_key: "sk-bench" },
  });
  return {
    ...{ name: names.litellm, pid: child.pid, url, modelFor: engineModel, ...passes },
    headers: { authorization: "Bearer sk-bench" },
    stop: () => ended(child),
  };
}

/**
 * Starts the Busbar that TEST_BUSBAR names, with a key whose limits are never reached. Null if TEST_BUSBAR is not set.
 */
export async function startBusbar(engineUrl: string): Promise<Target | null> {
  const program = process.env.TEST_BUSBAR;
  if (!program) return null;
  const place = mkdtempSync(join(tmpdir(), "sluice-bench-busbar-"));
  const { url, keys, pids, stop } = await busbar.start(program, {
    ...{ engine_url: engineUrl, folder: place, keys_ms_max: start_ms, wrapper: pinned([]) },
    models: behaviours.map(modelOf),
    requested: [{ name: "bench", limits: unlimited }],
  });
  return {
    ...{ name: names.busbar, pid: pids.gateway, url: url.replace(/\/v1$/, ""), modelFor: engineModel, ...passes },
    headers: { authorization: `Bearer ${keys[0]!.secret}` },
    stop: () => stop().finally(() => rmSync(place, { recursive: true, force: true })),
  };
}

interface Started {
  /** The base URL, without a path. */
  url: string;
  child: Bun.Subprocess;
}

/** Starts Portkey. `isHeadless`: without its web page. */
export async function portkey(isHeadless = true): Promise<Started> {
  const place = join(folder, `portkey-${versions.portkey}-${nodeServerVersion}`);
  const program = join(place, "node_modules/@portkey-ai/gateway/build/start-server.js");
  if (!(await Bun.file(program).exists())) {
    mkdirSync(place, { recursive: true });
    const dependencies = { "@portkey-ai/gateway": versions.portkey };
    const overrides = { "@hono/node-server": nodeServerVersion };
    writeFileSync(join(place, "package.json"), JSON.stringify({ dependencies, overrides }));
    const words = ["npm", "install", "--prefix", place, "--no-audit", "--no-fund"];
    await succeed(words, "npm could not install Portkey");
  }
  const port = await freePort();
  const child = Bun.spawn(pinned(["node", program, `--port=${port}`, ...(isHeadless ? ["--headless"] : [])]), {
    stdout: "ignore",
    stderr: "ignore",
  });
  const url = `http://127.0.0.1:${port}`;
  await until(() => answers(url), start_ms, "Portkey");
  return { url, child };
}

/** Starts LiteLLM. `settings` is the content of its configuration file. */
export async function litellm(settings: object): Promise<Started> {
  mkdirSync(folder, { recursive: true });
  const python = await pythonWith(requirements, "litellm");
  const port = await freePort();
  const file = join(folder, `litellm-${port}.yaml`);
  writeFileSync(file, JSON.stringify(settings));
  const words = [join(python, "../litellm"), "--config", file, "--port", `${port}`, "--host", "127.0.0.1"];
  const child = Bun.spawn(pinned(words), { stdout: "ignore", stderr: "ignore" });
  const url = `http://127.0.0.1:${port}`;
  await until(() => answers(`${url}/health/liveliness`), start_ms, "LiteLLM");
  return { url, child };
}

const passes = { isOthers: true, translates: false, speaks: ["chat"] as const };
const engineModel = (_: Protocol, behaviour: Behaviour) => modelOf(behaviour);

export async function ended(child: Bun.Subprocess): Promise<void> {
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await child.exited;
  clearTimeout(late);
}
