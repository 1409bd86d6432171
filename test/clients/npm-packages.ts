// Installs npm packages in a folder of their own, at their pinned versions or at the newest ones.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CannotRun, type Edition, listed } from "./edition.ts";
import { succeed } from "./virtual-environment.ts";

/**
 * The pinned version of each package, by the package's name. `newest` is the version range from which the newest
 * version is taken, for packages that must stay in a range.
 */
export type Wanted = Record<string, string | { pinned: string; newest: string }>;

export interface Installed {
  /** The folder whose `node_modules` contains the packages. */
  folder: string;
  versions: string;
}

/** Installs the packages. `name` is the folder below .cache/clients. The newest versions are downloaded each time. */
export async function npmPackages(name: string, wanted: Wanted, edition: Edition): Promise<Installed> {
  const folder = join(process.cwd(), ".cache/clients", name, edition);
  const dependencies = Object.fromEntries(
    Object.entries(wanted).map(([one, version]) => [one, rangeOf(version, edition)]),
  );
  const made = JSON.stringify({ private: true, dependencies });
  const madeFrom = join(folder, "made-from.json");
  if (edition === "newest" || !existsSync(madeFrom) || readFileSync(madeFrom, "utf8") !== made) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), made);
    const install = [process.execPath, "install", "--cwd", folder, "--ignore-scripts"];
    await succeed(install, `The packages of '${name}' (${edition}) could not be installed`);
    writeFileSync(madeFrom, made);
  }
  const versions = Object.keys(wanted).map((one) => [one, versionIn(folder, one)]);
  return { folder, versions: listed(Object.fromEntries(versions)) };
}

/**
 * The first of `paths` that exists among the packages' files. `what` describes the file in the error if none exists.
 */
export function fileIn({ folder, versions }: Installed, paths: string[], what: string): string {
  const found = paths.map((path) => join(folder, "node_modules", path)).find((path) => existsSync(path));
  if (!found) throw new CannotRun(`There is no ${what} for this machine in ${versions}.`);
  return found;
}

function rangeOf(version: Wanted[string], edition: Edition): string {
  if (typeof version === "string") return edition === "pinned" ? version : "latest";
  return version[edition];
}

function versionIn(folder: string, name: string): string {
  const manifest = readFileSync(join(folder, "node_modules", name, "package.json"), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}
