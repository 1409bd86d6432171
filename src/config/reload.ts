/** The configuration in force, and its replacement without a restart: a bad new one leaves the old one in force. */
import { isDeepStrictEqual } from "node:util";
import type { Configuration } from "./configuration.ts";
import { configurationHash } from "./hash.ts";
import { ConfigurationError } from "./problem.ts";

export type Reloaded = { ok: true; configuration: Configuration } | { ok: false; problems: readonly string[] };

export interface Reloadable {
  /** What is in force at this moment; of its plans, what this node's file says. A request takes it once, and keeps it. */
  current(): Configuration;
  /** Of what is in force. */
  hash(): string;
  /**
   * Reads everything again. Never throws; reloads that overlap run one after the other. `refuse` answers what speaks
   * against a new configuration, which then does not come into force.
   */
  reload(refuse?: (next: Configuration) => Promise<string[]>): Promise<Reloaded>;
}

export interface ReloadSources {
  load(): Configuration | ConfigurationError;
  /** What a new configuration needs is made ready before it comes into force (the simulator, for one), or throws. */
  prepare?(next: Configuration): Promise<Configuration>;
}

/** What the doors and the meter are built with stays: two halves of a service with different leases would disagree. */
function startingFrom(first: Configuration, next: Configuration): Configuration {
  const sections = ["metering", "limits", "telemetry"] as const;
  const changed = sections.filter((section) => !isDeepStrictEqual(first[section], next[section]));
  const notice = `${changed.join(" and ")} changed in the file; restart the service to apply this`;
  const isMoved = !isDeepStrictEqual(first.storage, next.storage);
  const notices = [...next.notices, ...(changed.length > 0 ? [notice] : []), ...(isMoved ? [moved] : [])];
  return {
    ...next,
    metering: first.metering,
    limits: first.limits,
    telemetry: first.telemetry,
    storage: first.storage,
    notices,
  };
}

const moved = "the address in DATABASE_URL_FILE or REDIS_URL_FILE changed; restart the service to apply this";

export function reloadable(first: Configuration, { load, prepare }: ReloadSources): Reloadable {
  let current = first;
  let hash = configurationHash(first);
  let last: Promise<unknown> = Promise.resolve();

  const replace = async (refuse?: (next: Configuration) => Promise<string[]>): Promise<Reloaded> => {
    try {
      const loaded = load();
      if (loaded instanceof ConfigurationError) return { ok: false, problems: loaded.problems };
      const problems = (await refuse?.(loaded)) ?? [];
      if (problems.length > 0) return { ok: false, problems };
      current = startingFrom(first, prepare ? await prepare(loaded) : loaded);
      hash = configurationHash(current);
      return { ok: true, configuration: current };
    } catch (cause) {
      return { ok: false, problems: [cause instanceof Error ? cause.message : String(cause)] };
    }
  };

  return {
    current: () => current,
    hash: () => hash,
    reload: (refuse) => {
      const replaced = last.then(() => replace(refuse));
      last = replaced;
      return replaced;
    },
  };
}
