// A folder to chroot into, with musl and the libraries of Alpine's packages libstdc++ and libgcc, all from package
// registries: the loader is Debian's package, and the libraries are those that a wheel for Alpine brings with it.

import { copyFileSync, existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { command } from "../command.ts";

const limit_ms = 5 * 60_000;
/** The first release of Debian whose musl knows the short form of relocations that the libraries have. */
const suite = "trixie";
/** A small wheel that is linked with both libraries. */
const wheel = "pyzmq==27.3.0";
const platform = ["--platform", "musllinux_1_2_x86_64", "--python-version", "3.12", "--implementation", "cp"];
const libraries = ["libstdc++", "libgcc_s"];

/** Fills the empty folder `root` with musl, libstdc++ and libgcc. Throws if that is not possible here. */
export async function fillWithMusl(root: string): Promise<void> {
  await done(["mmdebstrap", "--mode=root", "--variant=extract", "--include=musl", suite, root]);
  // Debian's packages have no folder /lib any more, and executables for musl name their loader there.
  if (!existsSync(join(root, "lib"))) symlinkSync("usr/lib", join(root, "lib"));
  const place = join(root, "tmp/wheel");
  const only = ["--no-deps", "--only-binary=:all:", "--abi", "abi3", "--abi", "cp312", ...platform];
  await done(["python3", "-m", "pip", "download", "--quiet", ...only, "--dest", place, wheel]);
  const [file = ""] = readdirSync(place);
  await done(["python3", "-m", "zipfile", "-e", join(place, file), place]);
  const from = join(place, "pyzmq.libs");
  // The folder in which Debian's loader looks for libraries.
  const into = join(root, "usr/lib/x86_64-linux-musl");
  mkdirSync(into, { recursive: true });
  for (const name of readdirSync(from)) {
    // `libstdc++-5d72f927.so.6.0.33`: the wheel's name for what everybody else calls libstdc++.so.6.
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
