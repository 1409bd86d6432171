// `npm run build`: one executable, dist/sluice. `npm run build -- --target=bun-linux-arm64` makes dist/sluice-linux-arm64;
// other options of `bun build` pass through as well. Beside the executable: THIRD_PARTY_NOTICES, sluice.cdx.json (a bill of
// materials), and SHA256SUMS of all of them.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { compiled } from "./compiled.ts";
import { writePapers } from "./supply/papers.ts";

async function main(): Promise<void> {
  mkdirSync("dist", { recursive: true });
  const options = process.argv.slice(2);
  const version = versionOf();
  const outfile = outfileOf(options);
  const notes = mkdtempSync(join(tmpdir(), "sluice-build-"));
  const metafile = join(notes, "metafile.json");
  const { code, took_ms } = await compiled({ outfile, version, options: [`--metafile=${metafile}`, ...options] });
  if (code === 0) writePapers({ folder: dirname(outfile), version, metafile: readFileSync(metafile, "utf8") });
  rmSync(notes, { recursive: true, force: true });
  if (code !== 0) process.exit(code);
  const megabytes = (statSync(outfile).size / 1e6).toFixed(1);
  console.error(`${outfile} ${version}: ${megabytes} MB in ${Math.round(took_ms)} ms`);
}

function outfileOf(options: string[]): string {
  const after = (name: string) => options.find((option) => option.startsWith(`${name}=`))?.slice(name.length + 1);
  const target = after("--target")?.replace(/^bun-/, "-") ?? "";
  return after("--outfile") ?? `dist/sluice${target}${target.includes("windows") ? ".exe" : ""}`;
}

/**
 * The version from package.json, and the commit if it is known: from git, or from the environment variable that CI and
 * the container image set.
 */
function versionOf(): string {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  const commit = process.env.SLUICE_BUILD_COMMIT || commitHere();
  return commit === "" ? version : `${version}+${commit}`;
}

function commitHere(): string {
  if (!existsSync(".git")) return "";
  try {
    const commit = execFileSync("git", ["rev-parse", "--short=12", "HEAD"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    const changed = execFileSync("git", ["status", "--porcelain", "--untracked-files=no"], { encoding: "utf8" });
    return commit.trim() + (changed.trim() === "" ? "" : ".changed");
  } catch {
    return "";
  }
}

await main();
