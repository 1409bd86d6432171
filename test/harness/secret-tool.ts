// A fake of a desktop's key store: a script in place of `secret-tool` that stores its entries in a folder. The real
// program, with GNOME's keyring, is tested by `npm run test:clients -- key-store`.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface KeyStoreUnderTest {
  /** The environment variables with which programs find the key store. Its folder comes first in PATH. */
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
 * Creates the fake key store below this folder. `typed()` returns the command-line arguments that it got, which any
 * user of the machine could read.
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
