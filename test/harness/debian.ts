// Unpacks programs from Debian packages into a folder, without root and without installing them.

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const executed = promisify(execFile);
/** The folder for everything that tests download. It may be deleted. */
export const cache = join(import.meta.dir, "../../.cache");
// The programs apt and dpkg call other programs by name, and must find them even if PATH is bare.
const path = `${process.env.PATH ?? ""}:/usr/sbin:/usr/bin:/sbin:/bin`;

function run(program: string, words: string[], options: { cwd?: string; timeout?: number; libraries?: string } = {}) {
  const { libraries, ...rest } = options;
  const env = { ...process.env, PATH: path, ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries }) };
  return executed(program, words, { ...rest, env });
}

export interface Wanted {
  /**
   * Packages to unpack. `NAME-*` stands for the versioned package on which the metapackage NAME, listed before it,
   * depends.
   */
  packages: string[];
  /** The program that is needed, as a path below the unpacked tree; `*` stands for a version. */
  program: string;
}

/** An attempt to unpack packages: the target folder, and the options that tell apt which package lists to use. */
interface Attempt {
  tree: string;
  lists: string[];
}

/**
 * Unpacks packages into the folder `tree`, with the shared libraries that their program needs and this machine lacks. A
 * complete `tree` is reused. If two processes unpack at the same time, the first complete tree stays. Throws if the
 * packages cannot be unpacked.
 */
export async function unpackedTree(tree: string, wanted: Wanted): Promise<string> {
  if (existsSync(tree)) return tree;
  const workplace = `${tree}.${randomUUID()}`;
  mkdirSync(join(workplace, "tree"), { recursive: true });
  try {
    const attempt = { tree: join(workplace, "tree"), lists: [] };
    // The machine's own package lists may be absent or out of date; then lists that this process downloads are used.
    await fill(attempt, wanted).catch(async () => fill({ ...attempt, lists: await ownLists(workplace) }, wanted));
    mkdirSync(dirname(tree), { recursive: true });
    renameSync(attempt.tree, tree);
  } catch (failure) {
    if (!existsSync(tree)) throw failure;
  } finally {
    rmSync(workplace, { recursive: true, force: true });
  }
  return tree;
}

export interface Program {
  path: string;
  env: Record<string, string | undefined>;
}

/**
 * Unpacks a program into `.cache` if it is not there yet, from the Debian package of the same name or from another one.
 * Throws if that fails.
 */
export async function debianProgram(name: string, from = { package: name, folder: "usr/sbin" }): Promise<Program> {
  const tree = await unpackedTree(join(cache, `debian-${from.package}`), {
    packages: [from.package],
    program: join(from.folder, from.package),
  });
  return { path: join(tree, from.folder, name), env: { ...process.env, LD_LIBRARY_PATH: libraryPath(tree) } };
}

/** The folders of a tree's shared libraries, in the format of LD_LIBRARY_PATH. */
export function libraryPath(tree: string): string {
  const inside = (folder: string) => (existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []);
  return [...inside(join(tree, "usr/lib")), ...inside(join(tree, "lib"))]
    .filter((folder) => folder.includes("-linux-gnu"))
    .join(":");
}

async function fill(attempt: Attempt, wanted: Wanted): Promise<void> {
  for (const name of wanted.packages) await unpack(attempt, [await numbered(attempt, name)]);
  const [found] = [...new Bun.Glob(wanted.program).scanSync({ cwd: attempt.tree, onlyFiles: false })];
  if (found === undefined) throw new Error(`no ${wanted.program} in ${wanted.packages.join(", ")}`);
  const program = join(attempt.tree, found);
  // An unpacked library may need further libraries.
  for (let round = 0; round < 4; round++) {
    const missing = await missingLibraries(program, attempt.tree);
    if (missing.length === 0) return;
    for (const library of missing) await unpack(attempt, packagesOf(library));
  }
  throw new Error(`libraries not found: ${(await missingLibraries(program, attempt.tree)).join(", ")}`);
}

async function numbered(attempt: Attempt, name: string): Promise<string> {
  if (!name.endsWith("-*")) return name;
  const metapackage = name.slice(0, -2);
  const { stdout } = await run("apt-cache", [...attempt.lists, "depends", metapackage]);
  const found = new RegExp(`Depends: (${metapackage}-\\d+)`).exec(stdout)?.[1];
  if (found === undefined) throw new Error(`Debian's lists name no version of ${metapackage}`);
  return found;
}

async function missingLibraries(program: string, tree: string): Promise<string[]> {
  const { stdout } = await run("ldd", [program], { libraries: libraryPath(tree) });
  return [...new Set([...stdout.matchAll(/^\s*(\S+) => not found/gm)].map((match) => match[1]!))];
}

/**
 * The package names that Debian's naming rule allows for a shared library: the file's name and its version, with `-`
 * between them where two digits would meet.
 */
function packagesOf(library: string): string[] {
  const [name = "", version = ""] = library.toLowerCase().replaceAll("_", "-").split(".so.");
  const families: Record<string, string> = { libcrypto: "libssl", libicuuc: "libicu", libicui18n: "libicu" };
  const plain = `${families[name] ?? name}${/\d$/.test(name) ? "-" : ""}${version}`;
  return [plain, `${plain}t64`];
}

/** Downloads and unpacks the first of the named packages that exists. */
async function unpack({ tree, lists }: Attempt, names: string[]): Promise<void> {
  const download = join(tree, "..", "download");
  let failure: unknown;
  for (const name of names) {
    mkdirSync(download, { recursive: true });
    try {
      await run("apt-get", [...lists, "download", name], { cwd: download, timeout: 120_000 });
      for (const file of readdirSync(download)) await run("dpkg", ["-x", join(download, file), tree]);
      return;
    } catch (thrown) {
      failure = thrown;
    } finally {
      rmSync(download, { recursive: true, force: true });
    }
  }
  throw failure;
}

async function ownLists(workplace: string): Promise<string[]> {
  const state = join(workplace, "state");
  const archives = join(workplace, "archives");
  mkdirSync(join(state, "lists/partial"), { recursive: true });
  mkdirSync(join(archives, "archives/partial"), { recursive: true });
  const lists = ["-o", `Dir::State=${state}`, "-o", "Dir::State::status=/var/lib/dpkg/status"];
  lists.push("-o", `Dir::Cache=${archives}`, "-o", "APT::Update::Post-Invoke=", "-o", "APT::Sandbox::User=root");
  await run("apt-get", [...lists, "update"], { timeout: 180_000 });
  return lists;
}
