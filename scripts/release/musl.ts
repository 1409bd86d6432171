// Creates a folder for chroot with musl and the libraries of Alpine's packages libstdc++ and libgcc, without Alpine:
// the loader is from Debian's package of musl, and the libraries are from a Python wheel for Alpine.

import { copyFileSync, existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { command } from "../command.ts";

const limit_ms = 5 * 60_000;
/** The first Debian release whose musl supports the compact relocations (RELR) that the libraries use. */
const suite = "trixie";
/** A small wheel that bundles both libraries. */
const wheel = "pyzmq==27.3.0";
const platform = ["--platform", "musllinux_1_2_x86_64", "--python-version", "3.12", "--implementation", "cp"];
const libraries = ["libstdc++", "libgcc_s"];

/** Fills the empty folder `root` with musl, libstdc++ and libgcc. Throws if that is not possible on this machine. */
export async function fillWithMusl(root: string): Promise<void> {
  await done(["mmdebstrap", "--mode=root", "--variant=extract", "--include=musl", suite, root]);
  // Executables for musl expect their loader in /lib, which Debian's packages no longer have.
  if (!existsSync(join(root, "lib"))) symlinkSync("usr/lib", join(root, "lib"));
  const place = join(root, "tmp/wheel");
  const only = ["--no-deps", "--only-binary=:all:", "--abi", "abi3", "--abi", "cp312", ...platform];
  await done(["python3", "-m", "pip", "download", "--quiet", ...only, "--dest", place, wheel]);
  const [file = ""] = readdirSync(place);
  await done(["python3", "-m", "zipfile", "-e", join(place, file), place]);
  const from = join(place, "pyzmq.libs");
  // The folder in which Debian's build of the loader looks for libraries.
  const into = join(root, "usr/lib/x86_64-linux-musl");
  mkdirSync(into, { recursive: true });
  for (const name of readdirSync(from)) {
    // The wheel renames libstdc++.so.6 to a name such as `libstdc++-5d72f927.so.6.0.33`.
    const [, library = "", major = ""] = /^(.+)-[0-9a-f]{8}\.so\.(\d+)/.exec(name) ?? [];
    if (!libraries.includes(library)) continue;
    copyFileSync(join(from, name), join(into, name));
    symlinkSync(name, join(into, `${library}.so.${major}`));
  }
}

async function done(words: string[]): Promise<void> {
  const { code, output } = await command(words, { limit_ms, quiet: true });
  if (code !== 0) throw new Error(`${words.slice(0, 4).join(" ")} ended with ${code}: ${output.slice(-1000)}`);
}
