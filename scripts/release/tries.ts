// The trial of each package: the steps that install it from its file, and the command that then starts the program.

import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { command } from "../command.ts";
import { emulatorOfArm64 } from "./emulator.ts";
import { fillWithMusl } from "./musl.ts";

export interface Try {
  about: string;
  words: string[];
  /** The options for `npm run smoke`. */
  options: string[];
  environment: Record<string, string>;
  end(): void;
}

/** Thrown if this machine cannot try a package, which is not an error of the package. */
export class CannotTry extends Error {}

const limit_ms = 5 * 60_000;
const file = (name: string) => {
  const path = resolve("dist/release", name);
  if (!existsSync(path)) throw new Error(`There is no ${path}: run npm run release.`);
  return path;
};

/** Runs the program with npx, from the files of the two packages alone. */
async function npx(version: string): Promise<Try> {
  const { folder, environment } = onlyNode();
  return {
    about: "npx, in an empty folder, with the registry off and no program but Node's",
    words: ["npx", "--offline", "--yes", ...packages(version).flatMap((path) => ["--package", path]), "sluice"],
    options: ["--patience=3", "--once"],
    environment,
    end: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Installs the program with npm install, from the files of the two packages alone. */
async function npm(version: string): Promise<Try> {
  const { folder, environment } = onlyNode();
  const words = ["npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", folder, ...packages(version)];
  await done(words, environment);
  return {
    about: "npm install, with the registry off and no program but Node's",
    words: [join(folder, "node_modules/.bin/sluice")],
    options: ["--patience=1"],
    environment,
    end: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function packages(version: string): string[] {
  return [file(`sluice-${version}.tgz`), file(`sluice-linux-${process.arch}-${version}.tgz`)];
}

/** The environment of a machine that has only Node, and whose npm registry does not respond. */
function onlyNode() {
  const folder = mkdtempSync(join(tmpdir(), "sluice-npm-"));
  const programs = join(folder, "programs");
  mkdirSync(programs);
  for (const name of ["node", "npm", "npx", "sh"]) {
    const found = Bun.which(name);
    if (found === null) throw new CannotTry(`There is no ${name} here.`);
    symlinkSync(found, join(programs, name));
  }
  const environment = { PATH: programs, HOME: folder, npm_config_registry: "http://127.0.0.1:1/" };
  return { folder, environment };
}

/** Installs the package with apt, in a new system that mmdebstrap creates. */
async function debian(version: string): Promise<Try> {
  mustBeRoot();
  const name = `sluice_${version}_${process.arch === "x64" ? "amd64" : process.arch}.deb`;
  const root = chrootFolder("debian");
  if (Bun.which("mmdebstrap") === null) throw new CannotTry("It needs mmdebstrap.");
  const suite = "bookworm";
  await done(["mmdebstrap", "--mode=root", "--variant=apt", suite, root]);
  copyFileSync(file(name), join(root, "tmp", name));
  await done(["chroot", root, "apt-get", "install", "--yes", "--no-install-recommends", `/tmp/${name}`]);
  rmSync(join(root, "tmp", name));
  return inChroot(root, "/usr/bin/sluice", `apt install ./${name} in a new Debian ${suite}`);
}

/** Runs the executable for musl, in a chroot that contains little besides musl. */
async function musl(version: string): Promise<Try> {
  mustBeRoot();
  if (process.arch !== "x64") throw new CannotTry("It needs an x64 processor.");
  for (const needed of ["mmdebstrap", "python3"])
    if (Bun.which(needed) === null) throw new CannotTry(`It needs ${needed}.`);
  const root = chrootFolder("musl");
  await fillWithMusl(root).catch((failure: Error) => {
    rmSync(root, { recursive: true, force: true });
    throw new CannotTry(`A root with musl cannot be had. ${failure.message}`);
  });
  mkdirSync(join(root, "usr/bin"), { recursive: true });
  await done(["tar", "-xzf", file(`sluice-${version}-linux-x64-musl.tar.gz`), "-C", join(root, "usr/bin"), "sluice"]);
  const about = "the executable for musl, in a root with musl, libstdc++ and libgcc";
  return { ...inChroot(root, "/usr/bin/sluice", about), options: ["--patience=3"] };
}

/** Runs the executable for arm64 in an emulator, in which everything takes twenty times as long. */
async function arm64(version: string): Promise<Try> {
  if (process.platform !== "linux") throw new CannotTry("It needs Linux.");
  const archive = file(`sluice-${version}-linux-arm64.tar.gz`);
  const emulator = process.arch === "arm64" ? [] : await emulatorOfArm64().catch(cannotEmulate);
  const folder = chrootFolder("arm64");
  await done(["tar", "-xzf", archive, "-C", folder, "sluice"]);
  return {
    about: emulator.length === 0 ? "the executable for arm64" : "the executable for arm64, under qemu-user",
    words: [...emulator, join(folder, "sluice")],
    options: ["--patience=10"],
    environment: {},
    end: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function cannotEmulate(failure: Error): never {
  throw new CannotTry(`qemu-user cannot be had. ${failure.message}`);
}

export const tries: Record<string, (version: string) => Promise<Try>> = { npx, npm, debian, musl, arm64 };

/** A shell command that enters the chroot with /proc and /dev mounted. The mounts end with the command. */
const entered = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"';

/** Runs the program in a chroot. Temporary files are in its /tmp, whose path is the same inside and outside. */
function inChroot(root: string, program: string, about: string): Try {
  for (const folder of ["dev", "proc", dirname(root)]) mkdirSync(join(root, folder), { recursive: true });
  symlinkSync("/", join(root, root));
  return {
    about,
    words: ["unshare", "--mount", "sh", "-c", entered, root, program],
    options: ["--patience=1"],
    environment: { TMPDIR: join(root, "tmp") },
    end: () => rmSync(root, { recursive: true, force: true }),
  };
}

const chrootFolder = (name: string) => mkdtempSync(join(tmpdir(), `sluice-${name}-`));

function mustBeRoot(): void {
  if (process.getuid?.() !== 0) throw new CannotTry("It needs root, for chroot.");
}

async function done(words: string[], environment: Record<string, string> = {}): Promise<void> {
  const { code, output } = await command(words, { limit_ms, environment, quiet: true });
  if (code !== 0) throw new Error(`${words.slice(0, 2).join(" ")} ended with ${code}: ${output.slice(-2000)}`);
}
