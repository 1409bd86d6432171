// Starts llama.cpp's own server, with a random model that model.py generates.

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startLlama } from "../engines/engines.ts";
import { pythonWith, succeed } from "../virtual-environment.ts";

const folder = ".cache/clients/engine";

/**
 * The engine's name for its model, and the engine's key. Both are canaries, which must not appear in what clients get.
 */
export const engineModel = "canary-engine-model-f32";
export const engineKey = "canary-engine-key-5e0a";

export interface Llama {
  /** The base URL, with `/v1`. */
  url: string;
  /** Whether the engine is generating now. */
  isBusy(): Promise<boolean>;
  /** The total number of output tokens of all finished responses. */
  tokens(): Promise<number>;
  stop(): Promise<void>;
}

/** Generates the model file, and returns its path. */
export async function randomModel(): Promise<string> {
  const python = await pythonWith(join(import.meta.dir, "requirements.txt"), "engine-python");
  mkdirSync(folder, { recursive: true });
  const model = join(folder, "random.gguf");
  await succeed([python, join(import.meta.dir, "model.py"), model], "The model could not be made");
  return model;
}

/**
 * Starts llama.cpp's server with the model at the path `model`. `template`: the name of a chat template in this folder.
 */
export async function startRandom(model: string, template: string, context_tokens = 32_768): Promise<Llama> {
  const { root, stop } = await startLlama(engineModel, model, undefined, {
    chat_template: readFileSync(join(import.meta.dir, template), "utf8"),
    n_ctx: context_tokens,
    api_keys: [engineKey],
  });
  const get = async (path: string) => {
    const response = await fetch(root + path, { headers: { authorization: `Bearer ${engineKey}` } });
    if (!response.ok) throw new Error(`the engine's ${path} answered ${response.status}`);
    return response;
  };
  return {
    url: `${root}/v1`,
    isBusy: async () =>
      ((await (await get("/slots")).json()) as { is_processing: boolean }[]).some((slot) => slot.is_processing),
    tokens: async () =>
      Number(/^llamacpp:tokens_predicted_total (\d+)/m.exec(await (await get("/metrics")).text())?.[1]),
    stop,
  };
}
