// The engines that can be installed from packages, started for embeddings, rankings, completions and fill-in-the-middle.

import { join } from "node:path";
import { llamaVersion, offline, realEngines, startLlama, startVllm, vllmVersion } from "./engines.ts";
import { encoders, hubName, logOf, tinyModel, torchPython } from "./models.ts";
import type { Operation } from "./operation-questions.ts";
import { type Server, startServer } from "./server.ts";

/** One process of an engine; most processes serve one model. */
export interface OperationServer {
  engine: string;
  version: string;
  /** The engine's name for the model of each operation that this process supports. */
  models: Partial<Record<Operation, string>>;
  /** The path of each operation, if it is not `/v1/` followed by the operation's name. */
  paths?: Partial<Record<Operation, string>>;
  start(): Promise<Server>;
}

const encoder = async (name: string): Promise<string> => join(await encoders(), name);
const gguf = async (name: string): Promise<string> => join(await encoders(), name, `${name}.gguf`);

export const operationServers: readonly OperationServer[] = [
  {
    engine: "infinity",
    version: "0.0.78",
    models: { embeddings: "embedding", rerank: "ranking" },
    start: startInfinity,
  },
  {
    engine: "vllm",
    version: vllmVersion,
    models: { embeddings: "embedding" },
    start: async () => startVllm("embedding", await encoder("embedding"), ["--runner", "pooling"]),
  },
  {
    engine: "vllm",
    version: vllmVersion,
    models: { rerank: "ranking" },
    start: async () => startVllm("ranking", await encoder("ranking"), ["--runner", "pooling"]),
  },
  { engine: "vllm", version: vllmVersion, models: { completions: "tiny" }, start: realEngines.vllm!.start },
  {
    engine: "llama.cpp",
    version: llamaVersion,
    models: { embeddings: "embedding" },
    start: async () => startLlama("embedding", await gguf("embedding"), "embedding"),
  },
  {
    engine: "llama.cpp",
    version: llamaVersion,
    models: { rerank: "ranking" },
    start: async () => startLlama("ranking", await gguf("ranking"), "ranking"),
  },
  {
    engine: "llama.cpp",
    version: llamaVersion,
    models: { completions: "tiny", infill: "tiny" },
    paths: { infill: "/infill" },
    start: async () => startLlama("tiny", join(await tinyModel(), "tiny.gguf")),
  },
  {
    engine: "transformers",
    version: realEngines.transformers!.version,
    models: { completions: hubName },
    start: realEngines.transformers!.start,
  },
];

/** Starts the engine Infinity. The option `--url-prefix` makes its paths begin with `/v1`. */
async function startInfinity(): Promise<Server> {
  const python = await torchPython("infinity");
  const models = await encoders();
  const served = ["embedding", "ranking"].flatMap((name) => [
    "--model-id",
    join(models, name),
    "--served-model-name",
    name,
  ]);
  const plain = ["--device", "cpu", "--engine", "torch", "--no-bettertransformer", "--no-model-warmup"];
  const words = ["v2", ...served, ...plain, "--url-prefix", "/v1", "--host", "127.0.0.1", "--port"];
  return startServer({
    words: (port) => [join(python, "../infinity_emb"), ...words, `${port}`],
    environment: { ...offline, DO_NOT_TRACK: "1", INFINITY_ANONYMOUS_USAGE_STATS: "0" },
    ready: "/v1/models",
    start_ms: 5 * 60_000,
    log: logOf("infinity"),
  });
}
