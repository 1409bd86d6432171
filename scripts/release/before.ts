// Builds the executable of the previous release, which is the newest release in the history of this commit, from the
// commit of that release.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { command } from "../command.ts";

const root = join(import.meta.dir, "../..");
const limit_ms = 5 * 60_000;
/** The file to which each release adds a line (`npm run release:freeze`). */
const released = "db/migrations/released";

export interface Release {
  version: string;
  commit: string;
}

/** Thrown if the previous release cannot be built on this machine, which is not an error of either version. */
export class NoReleaseBefore extends Error {}

/**
 * Finds the previous release. Throws NoReleaseBefore if this checkout has no history, or if nothing was released
 * before.
 */
export function releaseBefore(): Release {
  const head = git("rev-parse", "HEAD");
  for (const line of readFileSync(join(root, released), "utf8").split("\n").reverse()) {
    const [version = ""] = line.split("  ");
    if (version === "") continue;
    const commit = git("log", "--format=%H", `-S${version}  `, "--", released).split("\n").at(-1) ?? "";
    if (commit === "") throw new NoReleaseBefore(`The history that is here has no commit that released ${version}.`);
    if (commit !== head) return { version, commit };
  }
  throw new NoReleaseBefore("Nothing was released before this.");
}

/** Builds the release's executable once and caches it. Returns its path. */
export async function executableOf({ version, commit }: Release): Promise<string> {
  const kept = join(root, ".cache", `sluice-${version}-${commit.slice(0, 12)}`);
  if (existsSync(kept)) return kept;
  const folder = mkdtempSync(join(tmpdir(), "sluice-before-"));
  try {
    await done(["sh", "-c", 'git archive "$0" | tar -x -C "$1"', commit, folder], root);
    takeOver(folder);
    const outfile = join(folder, "sluice");
    const build = ["sh", "scripts/run", "scripts/build.ts", `--outfile=${outfile}`];
    await done(build, folder, { SLUICE_BUILD_COMMIT: commit.slice(0, 12) });
    mkdirSync(join(root, ".cache"), { recursive: true });
    cpSync(outfile, `${kept}.${process.pid}`);
    renameSync(`${kept}.${process.pid}`, kept);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return kept;
}

/**
 * Links this checkout's node_modules into the release's folder if both have the same packages, instead of installing
 * them.
 */
function takeOver(folder: string): void {
  const isSame = readFileSync(join(folder, "bun.lock"), "utf8") === readFileSync(join(root, "bun.lock"), "utf8");
  if (isSame && existsSync(join(root, "node_modules/.installed")))
    symlinkSync(resolve(root, "node_modules"), join(folder, "node_modules"));
}

function git(...words: string[]): string {
  try {
    return execFileSync("git", words, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
  } catch (failure) {
    throw new NoReleaseBefore(`git tells nothing here: ${(failure as Error).message.trim()}`);
  }
}

async function done(words: string[], folder: string, environment: Record<string, string> = {}): Promise<void> {
  const { code, output } = await command(words, { limit_ms, folder, environment, quiet: true });
  if (code !== 0) throw new Error(`${words.slice(0, 3).join(" ")} ended with ${code}: ${output.slice(-2000)}`);
}
