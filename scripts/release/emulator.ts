import { join } from "node:path";
import { cache, libraryPath, unpackedTree } from "../../test/harness/debian.ts";

/** The command that runs an arm64 program: qemu-user with the arm64 libraries, from Debian's packages. */
export async function emulatorOfArm64(): Promise<string[]> {
  const packages = ["qemu-user", "libc6-arm64-cross"];
  const tree = await unpackedTree(join(cache, "debian-qemu-user"), { packages, program: "usr/bin/qemu-aarch64" });
  return [
    "env",
    `LD_LIBRARY_PATH=${libraryPath(tree)}`,
    join(tree, "usr/bin/qemu-aarch64"),
    "-L",
    join(tree, "usr/aarch64-linux-gnu"),
  ];
}
