// Compiles the sources to one executable, for `npm run build`, and for tests that start many nodes.

import { command, type Outcome } from "./command.ts";
import { entries } from "./entries.ts";

const limit_ms = 5 * 60_000;

// The sources must not have a top-level await: the executable would run a part of its entry file and exit with 0
// (oven-sh/bun#37770). And an executable must not read .env or bunfig.toml from the working directory.

const flags = ["--compile", "--minify", "--bytecode", "--splitting", "--format=esm", "--sourcemap"];
const closed = ["--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"];

export interface Compilation {
  outfile: string;
  /** The version that the executable reports. */
  version: string;
  /** Additional options of `bun build`. */
  options?: string[];
  quiet?: boolean;
}

export function compiled({ outfile, version, options = [], quiet = false }: Compilation): Promise<Outcome> {
  const own = [`--define=SLUICE_BUILD=${JSON.stringify(version)}`, `--outfile=${outfile}`];
  return command([process.execPath, "build", ...flags, ...closed, ...own, ...options, ...entries], { limit_ms, quiet });
}
