/**
 * A hash of what is in force, so that a drift between nodes shows. Of a node's own there is nothing in it (where it listens,
 * where its data lies, where its simulator runs), and of a secret only whether there is one: the hash is public. Pure.
 */
import type { Configuration } from "./configuration.ts";
import { simulatorName } from "./simulator.ts";

/** 16 hex digits. */
export function configurationHash({ server: _, storage: __, notices: ___, ...shared }: Configuration): string {
  const text = JSON.stringify(shared, (_name, value: unknown) => plain(value));
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16);
}

/** The same value for what means the same, whatever order it was written in. */
function plain(value: unknown): unknown {
  if (value instanceof Set) return [...value].sort();
  if (value instanceof Map) return Object.fromEntries([...value].sort(byName));
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).sort(byName);
  const isSimulator = "protocol" in value && "name" in value && value.name === simulatorName;
  return Object.fromEntries(
    entries
      .filter(([name]) => !(isSimulator && name === "url"))
      .map(([name, one]) => [name, name === "apiKey" ? one !== null : one]),
  );
}

function byName([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1;
}
