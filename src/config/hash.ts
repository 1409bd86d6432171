/**
 * Hashes the configuration in force, so that nodes with different ones can be told apart. It leaves out the settings of the
 * node itself: its addresses, its data, and the URL of its simulator. The hash is public, so it only has whether a secret is
 * set. Pure.
 */
import type { Configuration } from "./configuration.ts";
import { simulatorName } from "./simulator.ts";

/** Returns 16 hex digits. */
export function configurationHash({
  server: _,
  storage: __,
  notices: ___,
  hasFile: ____,
  ...shared
}: Configuration): string {
  const text = JSON.stringify(shared, (_name, value: unknown) => plain(value));
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16);
}

/** Settings that mean the same have the same form here, in whatever order they were written. */
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

const isSecret = (name: string) => name === "apiKey" || name === "clientSecret";

function byName([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1;
}
