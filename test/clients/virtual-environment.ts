// Creates Python virtual environments, with exactly the packages of a requirements.txt, or with the newest versions of
// the requested packages.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { command } from "../../scripts/command.ts";
import { CannotRun, type Edition, listed } from "./edition.ts";

const install_ms = 10 * 60_000;

export interface PythonPackages {
  /** The path of the requirements file, which pins all packages. */
  requirements: string;
  /**
   * The packages under test, with their extras. With the newest versions, pip chooses the versions of their
   * dependencies.
   */
  meant: readonly string[];
  /** The environment's folder below .cache/clients. */
  folder: string;
}

export interface Python {
  /** The path of the environment's `python`. */
  python: string;
  versions: string;
}

export async function pythonFor({ requirements, meant, folder }: PythonPackages, edition: Edition): Promise<Python> {
  const python =
    edition === "pinned" ? await pythonWith(requirements, folder) : await newestPython(`${folder}-newest`, meant);
  const list = await command([python, "-m", "pip", "list", "--format", "json"], { limit_ms: 60_000, quiet: true });
  const installed = JSON.parse(list.stdout) as { name: string; version: string }[];
  const names = meant.map((one) => one.replace(/\[.*/, ""));
  const found = installed.filter(({ name }) => names.includes(name));
  return { python, versions: listed(Object.fromEntries(found.map(({ name, version }) => [name, version]))) };
}

export interface InstallOptions {
  limit_ms?: number;
  /**
   * The path of a file with versions that override those which packages require. pip has no such option, so uv installs
   * then.
   */
  overrides?: string;
}

/**
 * Returns the path of the environment's `python`. A new environment is created whenever the content of the requirements
 * file changes. `name` is its folder below .cache/clients.
 */
export async function pythonWith(requirements: string, name: string, options: InstallOptions = {}): Promise<string> {
  const { limit_ms = install_ms, overrides } = options;
  const folder = join(".cache/clients", name);
  const python = join(folder, "bin/python");
  const wanted = readFileSync(requirements, "utf8") + (overrides ? readFileSync(overrides, "utf8") : "");
  const madeFrom = join(folder, "made-from.txt");
  if (existsSync(madeFrom) && readFileSync(madeFrom, "utf8") === wanted) return python;
  await freshEnvironment(folder);
  const pip = [python, "-m", "pip", "install", "-q"];
  let install = [...pip, "-r", requirements];
  if (overrides) {
    await succeed([...pip, uv], "pip could not install uv", limit_ms);
    const into = ["pip", "install", "-q", "--python", python, "--compile-bytecode"];
    install = [join(folder, "bin/uv"), ...into, "--overrides", overrides, "-r", requirements];
  }
  await succeed(install, `${requirements} could not be installed`, limit_ms);
  writeFileSync(madeFrom, wanted);
  return python;
}
const uv = "uv==0.13.9";

/** Returns the `python` of an environment with the newest versions, which are downloaded each time. */
async function newestPython(name: string, packages: readonly string[]): Promise<string> {
  const folder = join(".cache/clients", name);
  const python = join(folder, "bin/python");
  await freshEnvironment(folder);
  await succeed([python, "-m", "pip", "install", "-q", ...packages], `pip could not install ${packages.join(", ")}`);
  return python;
}

async function freshEnvironment(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  const system = Bun.which("python3");
  if (!system)
    throw new CannotRun("There is no python3 on this machine. Install Python 3.10 or later, with venv and pip.");
  await succeed([system, "-m", "venv", folder], "Python could not make a virtual environment (Debian: python3-venv)");
}

export async function succeed(words: string[], complaint: string, limit_ms = install_ms): Promise<void> {
  const { code, output } = await command(words, { limit_ms, quiet: true });
  if (code !== 0) throw new CannotRun(`${complaint}:\n${output.slice(-4000)}`);
}
