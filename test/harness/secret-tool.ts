// A stand-in for a desktop's key store: `secret-tool` as a script that keeps its entries in a folder. The real one, with
// GNOME's keyring behind it, is tried by `npm run test:clients -- key-store`.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface KeyStoreUnderTest {
  /** The variables with which the store is found; its PATH comes before the user's. */
  env: Record<string, string>;
  /** The secrets in the store, one for each of its entries. */
  secrets(): Promise<string[]>;
  lock(): Promise<void>;
  unlock(): Promise<void>;
}

const script = `#!/bin/sh
cd "$(dirname "$0")/entries" || exit 1
echo "$*" >>../arguments
if [ -e ../locked ]; then echo 'secret-tool: Cannot create an item in a locked collection' >&2; exit 1; fi
verb=$1
for id; do :; done
case $verb in
  store) cat >"$id" ;;
  lookup) if [ -e "$id" ]; then cat "$id"; else exit 1; fi ;;
  clear) if [ -e "$id" ]; then rm "$id"; else exit 1; fi ;;
esac
`;

/**
 * Makes a stand-in below this folder. `typed()` returns the arguments with which the stand-in was run, which any user
 * of the machine can read.
 */
export function standInKeyStore(folder: string): KeyStoreUnderTest & { typed(): string } {
  const bin = join(folder, "key-store");
  const entries = join(bin, "entries");
  const locked = join(bin, "locked");
  mkdirSync(entries, { recursive: true });
  writeFileSync(join(bin, "secret-tool"), script, { mode: 0o755 });
  return {
    env: { PATH: `${bin}:${process.env.PATH}`, DBUS_SESSION_BUS_ADDRESS: "unix:path=/nowhere" },
    secrets: async () => readdirSync(entries).map((name) => readFileSync(join(entries, name), "utf8")),
    lock: async () => writeFileSync(locked, ""),
    unlock: async () => rmSync(locked, { force: true }),
    typed: () => (existsSync(join(bin, "arguments")) ? readFileSync(join(bin, "arguments"), "utf8") : ""),
  };
}
