/**
 * Hashes the configuration in force, so that nodes with different ones can be told apart. The settings of the node
 * itself are left out: its addresses, its data, and the URL of its simulator. The hash is public, so of a secret only
 * its presence counts. Pure.
 */
import type { Configuration } from "./configuration.ts";
import { simulatorName } from "./simulator.ts";

/** The hash: 16 hex digits. */
export function configurationHash({
  server: _,
  storage: __,
  notices: ___,
  hasFile: ____,
  namesFrom: _____,
  ...shared
}: Configuration): string {
  const text = JSON.stringify(shared, (_name, value: unknown) => plain(value));
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16);
}

/** The value in a normal form: settings that mean the same become equal, in whatever order they were written. */
function plain(value: unknown): unknown {
  if (value instanceof Set) return [...value].sort();
  if (value instanceof Map) return Object.fromEntries([...value].sort(byName));
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).sort(byName);
  const isSimulator = "protocol" in value && "name" in value && value.name === simulatorName;
  return Object.fromEntries(
    entries
      .filter(([name]) => !(isSimulator && name === "url"))
      .map(([name, one]) => [name, isSecret(name) ? one !== null : one]),
  );
}

const isSecret = (name: string) => ["apiKey", "clientSecret", "password"].includes(name);

function byName([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1;
}
