// Runs the checks of the key store with Debian's secret-tool and GNOME's keyring, unpacked into .cache, in a D-Bus
// session without a desktop.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { countsOf } from "../../../scripts/counts.ts";
import { cache, libraryPath, unpackedTree } from "../../harness/debian.ts";
import { CannotRun, onlyPinned } from "../edition.ts";

const packages = ["libsecret-1-0", "libsecret-tools", "libgck-1-0", "libgcr-base-3-1", "libcap-ng0", "gnome-keyring"];

export const keyStoreSuite = onlyPinned("of Debian", async () => {
  if (Bun.which("dbus-run-session") === null) throw new CannotRun("There is no dbus-run-session here (Debian: dbus).");
  const wanted = { packages, program: "usr/bin/gnome-keyring-daemon" };
  const tree = await unpackedTree(join(cache, "debian-gnome-keyring"), wanted);
  const folder = mkdtempSync(join(tmpdir(), "sluice-keyring-"));
  const bin = join(folder, "bin");
  mkdirSync(bin);
  const libraries = libraryPath(tree);
  writeFileSync(
    join(bin, "secret-tool"),
    `#!/bin/sh\nLD_LIBRARY_PATH='${libraries}' exec '${tree}/usr/bin/secret-tool' "$@"\n`,
    { mode: 0o755 },
  );
  const unlock = `printf word | LD_LIBRARY_PATH='${libraries}' '${tree}/usr/bin/gnome-keyring-daemon' --unlock --components=secrets`;
  const checks = join(import.meta.dir, "key-store.checks.ts");
  const script = `${unlock} && exec '${process.execPath}' test '${checks}'`;
  try {
    const { code, output } = await command(["dbus-run-session", "--", "sh", "-c", script], {
      limit_ms: 120_000,
      environment: { HOME: folder, XDG_RUNTIME_DIR: folder, PATH: `${bin}:${process.env.PATH}` },
    });
    return countsOf(output, code);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
