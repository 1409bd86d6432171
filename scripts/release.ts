// `npm run release`: makes the files of a release, in dist/release: for each platform an executable in an archive and
// an npm package, the npm package that starts the right executable, packages for Debian, a Homebrew formula, licence
// notices, a bill of materials and checksums. Nothing is published. docs/releasing.md says how each file is checked.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { command } from "./command.ts";
import { debianPackage, isForDebian } from "./release/debian.ts";
import { emulatorOfArm64 } from "./release/emulator.ts";
import { type Archive, formulaOf } from "./release/homebrew.ts";
import { packExecutable, packLauncher } from "./release/packages.ts";
import { formatOf, programName, type Target, targets } from "./release/targets.ts";

const folder = "dist/release";
const limit_ms = 5 * 60_000;
const compressed_bytes_max = 80_000_000;
const epoch = "1970-01-01 00:00:00Z";

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { only: { type: "string", default: "" }, url: { type: "string", default: "https://releases.invalid" } },
  });
  const chosen = targets.filter(({ name }) => values.only === "" || values.only.split(",").includes(name));
  if (chosen.length === 0) throw new Error(`--only names some of ${targets.map(({ name }) => name).join(", ")}.`);
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const archives: Archive[] = [];
  for (const target of chosen) archives.push(await made(target, version));
  say(await packLauncher(folder, version, targets), "starts the executable of the machine");
  writeFileSync(join(folder, "sluice.rb"), formulaOf(version, values.url, archives));
  for (const part of ["npm", "deb"]) rmSync(join(folder, part), { recursive: true, force: true });
  writeSums();
}

/** Makes all files of the release for one platform. Returns the archive with the executable. */
async function made(target: Target, version: string): Promise<Archive> {
  const place = join(folder, target.name);
  const executable = join(place, programName(target));
  await done([process.execPath, "scripts/build.ts", `--target=${target.bun}`, `--outfile=${executable}`]);
  for (const name of readdirSync(place)) if (name.endsWith(".map")) rmSync(join(place, name));
  const start = await started(target, executable);
  const papers = ["THIRD_PARTY_NOTICES", "sluice.cdx.json"].map((name) => join(place, name));
  const files = [executable, ...papers];
  const archive = `sluice-${version}-${target.name}.tar.gz`;
  const fixed = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", `--mtime=${epoch}`];
  const names = files.map((file) => file.split("/").at(-1)!);
  await done(["tar", ...fixed, "-C", place, "-czf", join(folder, archive), ...names]);
  say(join(folder, archive), start);
  say(await packExecutable(folder, version, target, files), "npm");
  if (isForDebian(target)) {
    if (Bun.which("dpkg-deb") === null) console.log(`no package for Debian: there is no dpkg-deb here`);
    else say(await debianPackage(folder, version, target, files), "Debian");
  }
  cpSync(papers[1]!, join(folder, `sluice-${version}-${target.name}.cdx.json`));
  rmSync(place, { recursive: true });
  return { target, name: archive, sha256: sha256(join(folder, archive)) };
}

/** Checks the format of the executable, and starts it if this machine can run it. */
async function started(target: Target, executable: string): Promise<string> {
  const head = new Uint8Array(await Bun.file(executable).slice(0, 4096).arrayBuffer());
  const format = formatOf(head);
  if (format !== target.format) throw new Error(`${executable} is ${format ?? "no program"}, not ${target.format}.`);
  const runner = await runnerOf(target);
  if (runner === null) return `${format}; not started, this machine can't`;
  const { code, output } = await command([...runner, executable, "--version"], { limit_ms, quiet: true });
  if (code !== 0) throw new Error(`${executable} --version ended with ${code}: ${output}`);
  return `${format}; started: ${output.trim()}`;
}

/**
 * The command that runs an executable of this platform on this machine, up to the executable's path. Null if the
 * machine cannot run it.
 */
async function runnerOf({ os, cpu, libc }: Target): Promise<string[] | null> {
  // An executable for musl also needs a libstdc++ for musl, which only a system based on musl has. `npm run
  // release:try` creates such a system.
  if (os !== process.platform || (libc === "musl" && !existsSync("/etc/alpine-release"))) return null;
  if (cpu === process.arch) return [];
  return cpu === "arm64" ? emulatorOfArm64().catch(() => null) : null;
}

async function done(words: string[]): Promise<void> {
  const { code, output } = await command(words, { limit_ms, quiet: true });
  if (code !== 0) throw new Error(`${words.slice(0, 3).join(" ")} ended with ${code}:\n${output}`);
}

function say(file: string, about: string): void {
  const { size } = statSync(file);
  if (size > compressed_bytes_max) throw new Error(`${file} has ${size} bytes, more than ${compressed_bytes_max}.`);
  console.log(`${file}  ${(size / 1e6).toFixed(1)} MB  ${about}`);
}

function writeSums(): void {
  const names = readdirSync(folder).sort();
  const lines = names.map((name) => `${sha256(join(folder, name))}  ${name}\n`);
  writeFileSync(join(folder, "SHA256SUMS"), lines.join(""));
  console.log(`${join(folder, "SHA256SUMS")}  ${names.length} files`);
}

function sha256(path: string): string {
  return new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex");
}

await main();
