// transformers' own server (`transformers serve`) from PyPI, with a model that model.py makes on the spot. It runs offline.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { startServer } from "../engines/server.ts";
import { pythonWith, succeed } from "../virtual-environment.ts";

/** The engine's name of its model: a canary, which must show nowhere. */
export const engineModel = "tiny/parrot";

const install_ms = 30 * 60_000;
const train_ms = 20 * 60_000;
const start_ms = 5 * 60_000;

export interface Engine {
  /** With `/v1`. */
  url: string;
  stop(): Promise<void>;
}

/** Makes what is missing. Paths of its Python and of the folder that it takes its models from. */
export async function engineParts(): Promise<{ python: string; models: string }> {
  const python = resolve(
    await pythonWith(join(import.meta.dir, "requirements.txt"), "transformers-python", { limit_ms: install_ms }),
  );
  const models = resolve(".cache/clients/transformers-models");
  const recipe = readFileSync(join(import.meta.dir, "model.py"), "utf8");
  const madeFrom = join(models, "made-from.txt");
  if (!existsSync(madeFrom) || readFileSync(madeFrom, "utf8") !== recipe) {
    console.error("teaching a tiny model six answers by heart, once; it takes a minute or two");
    rmSync(models, { recursive: true, force: true });
    await succeed([python, join(import.meta.dir, "model.py"), models], "The model could not be made", train_ms);
    writeFileSync(madeFrom, recipe);
  }
  return { python, models };
}

export async function startEngine(): Promise<Engine> {
  const { TRANSFORMERS_PYTHON: python, TRANSFORMERS_MODELS: models } = process.env;
  if (!python || !models) throw new Error("Start this by: npm run test:clients -- transformers");
  const serve = ["-m", "transformers.cli.transformers", "serve", "--host", "127.0.0.1", "--device", "cpu", "--port"];
  const { root, stop } = await startServer({
    words: (port) => [python, ...serve, `${port}`],
    environment: { HOME: models, HF_HOME: models, HF_HUB_OFFLINE: "1", OMP_NUM_THREADS: "1" },
    ready: "/health",
    start_ms,
  });
  return { url: `${root}/v1`, stop };
}
