// A Python of our own, with exactly the packages that a requirements.txt names; made once for each such file.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { command } from "../../scripts/command.ts";

const install_ms = 10 * 60_000;

/** Path of its `python`. `name` is its folder below .cache/clients. */
export async function pythonWith(requirements: string, name: string, limit_ms = install_ms): Promise<string> {
  const folder = join(".cache/clients", name);
  const python = join(folder, "bin/python");
  const wanted = readFileSync(requirements, "utf8");
  const madeFrom = join(folder, "made-from.txt");
  if (existsSync(madeFrom) && readFileSync(madeFrom, "utf8") === wanted) return python;
  rmSync(folder, { recursive: true, force: true });
  const system = Bun.which("python3");
  if (!system) throw new Error("There is no python3 on this machine. Install Python 3.10 or later, with venv and pip.");
  await succeed([system, "-m", "venv", folder], "Python could not make a virtual environment (Debian: python3-venv)");
  const install = [python, "-m", "pip", "install", "-q", "-r", requirements];
  await succeed(install, `pip could not install ${requirements}`, limit_ms);
  writeFileSync(madeFrom, wanted);
  return python;
}

export async function succeed(words: string[], complaint: string, limit_ms = install_ms): Promise<void> {
  const { code, output } = await command(words, { limit_ms, quiet: true });
  if (code !== 0) throw new Error(`${complaint}:\n${output.slice(-4000)}`);
}
