// Lists the contents of an executable: the packages whose files the bundler included, and the packages within those.

import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface Package {
  name: string;
  /** The version; null for a package bundled in another one that states only a range of versions for it. */
  version: string | null;
  /** The licence that the package's manifest states, usually an SPDX ID; null if it states none. */
  license: string | null;
  author: string;
  /** The folder of the package; null for a package that is bundled in another one. */
  folder: string | null;
  /** The hash of the package's archive in the lock file, such as `sha512-…`. */
  integrity: string | null;
  /** The packages that are bundled in this one. */
  inside: Package[];
}

interface Manifest {
  name: string;
  version: string;
  license?: string;
  author?: string | { name: string };
  dependencies?: Record<string, string>;
}

/** The packages in a bundle, read from the bundler's metafile, sorted by name. */
export function bundledPackages(metafile: string): Package[] {
  const { inputs } = JSON.parse(metafile) as { inputs: Record<string, unknown> };
  const folders = new Set(Object.keys(inputs).flatMap((path) => folderOf(path) ?? []));
  const sums = integrities();
  return [...folders]
    .map((folder) => packageIn(folder, sums))
    .sort((one, other) => order(`${one.name}@${one.version}`, `${other.name}@${other.version}`));
}

/** The version of Postgres in PGlite, as reported by its program. */
export function postgresVersion(): string {
  const program = readFileSync("node_modules/@electric-sql/pglite/dist/pglite.wasm", "latin1");
  const version = /PostgreSQL (\d+\.\d+)/.exec(program)?.[1];
  if (version === undefined) throw new Error("PGlite's program does not say which Postgres it is");
  return version;
}

/**
 * The folder of the package that contains a file: node_modules/a/node_modules/@b/c/x.js →
 * node_modules/a/node_modules/@b/c
 */
function folderOf(path: string): string | null {
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? null;
}

function packageIn(folder: string, sums: Map<string, string>): Package {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  const { name, version, license = null, author = name } = manifest;
  const integrity = sums.get(`${name}@${version}`) ?? null;
  const maker = typeof author === "string" ? author : author.name;
  return { name, version, license, author: maker, folder, integrity, inside: insideOf(manifest) };
}

/**
 * The packages that are already bundled in this one. The `overrides` of package.json replace each of them by an empty
 * package.
 */
function insideOf({ dependencies = {} }: Manifest): Package[] {
  const { overrides = {} } = JSON.parse(readFileSync("package.json", "utf8")) as { overrides?: Record<string, string> };
  return Object.entries(dependencies)
    .filter(([name]) => overrides[name]?.endsWith("/already-bundled"))
    .map(([name, range]) => {
      const version = /^\d/.test(range) ? range : null;
      return { name, version, license: null, author: name, folder: null, integrity: null, inside: [] };
    });
}

/** The integrity hashes in the lock file, by `name@version`. */
function integrities(): Map<string, string> {
  const entries = readFileSync("bun.lock", "utf8").matchAll(/^ {4}".+": \["([^"]+@[^"@]+)", .*"(sha512-[^"]+)"\],?$/gm);
  return new Map([...entries].map(([, key, sum]) => [key!, sum!]));
}

function order(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
