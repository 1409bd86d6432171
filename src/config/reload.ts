/**
 * Holds the configuration in force, and replaces it without a restart. A configuration with problems does not replace
 * it.
 */
import { isDeepStrictEqual } from "node:util";
import type { Configuration } from "./configuration.ts";
import { configurationHash } from "./hash.ts";
import { ConfigurationError } from "./problem.ts";
import { sections } from "./settings/sections.ts";

type Reloaded = { ok: true; configuration: Configuration } | { ok: false; problems: readonly string[] };

export interface Reloadable {
  /** The configuration in force, with the plans of this node's file. Each request reads it once. */
  current(): Configuration;
  hash(): string;
  /**
   * Reads the configuration again. Never throws; overlapping reloads run one after the other. If `refuse` returns
   * problems, the new configuration does not come into force.
   */
  reload(refuse?: Refuse, agree?: Agree): Promise<Reloaded>;
  /** Changes the configuration in force without reading it again, between reloads. `change` may not throw. */
  improve(change: (current: Configuration) => Promise<Configuration>): Promise<void>;
}

type Refuse = (next: Configuration) => Promise<string[]>;

/**
 * Exchanges problems with the other processes of the node, so that either all of them apply a configuration or none
 * does. Returns the problems of all processes.
 */
export type Agree = (problems: readonly string[]) => Promise<readonly string[]>;

interface ReloadSources {
  load(): Configuration | ConfigurationError;
  /** Prepares what a new configuration needs before it comes into force, such as the simulator. May throw. */
  prepare?(next: Configuration, before: Configuration): Promise<Configuration>;
}

const atStart = (Object.keys(sections) as (keyof typeof sections)[]).filter(
  (name) => sections[name].applies === "start",
);

/** The parts of a configuration that take effect only at a start: the sections in `atStart`, and `storage`. */
export type StartParts = Partial<Pick<Configuration, keyof typeof sections>> & Pick<Configuration, "storage">;

export function startPartsOf(configuration: StartParts): StartParts {
  return Object.fromEntries([...atStart, "storage" as const].map((name) => [name, configuration[name]])) as StartParts;
}

/**
 * The next configuration, but with the first configuration's values in those sections that take effect only at a start,
 * and with notices about changes in those sections.
 */
export function startingFrom(first: StartParts, next: Configuration): Configuration {
  const kept = startPartsOf(first);
  const changed = atStart.filter((name) => !isDeepStrictEqual(first[name], next[name]));
  const notices = [...next.notices];
  if (changed.length > 0)
    notices.push(`${changed.join(" and ")} changed in the file; restart the service to apply this`);
  if (!isDeepStrictEqual(first.storage, next.storage)) notices.push(moved);
  return { ...next, ...kept, notices };
}

const moved = "the address in DATABASE_URL_FILE or REDIS_URL_FILE changed; restart the service to apply this";

export function reloadable(first: Configuration, { load, prepare }: ReloadSources): Reloadable {
  let current = first;
  let hash = configurationHash(first);
  let last: Promise<unknown> = Promise.resolve();

  /** Loads and checks the new configuration. Never throws, so that the other processes learn the result in any case. */
  const examined = async (refuse: Refuse): Promise<{ next: Configuration } | { problems: readonly string[] }> => {
    try {
      const next = load();
      if (next instanceof ConfigurationError) return { problems: next.problems };
      const problems = await refuse(next);
      return problems.length > 0 ? { problems } : { next };
    } catch (cause) {
      return { problems: [messageOf(cause)] };
    }
  };

  const replace = async (refuse: Refuse = async () => [], agree: Agree = async (own) => own): Promise<Reloaded> => {
    const found = await examined(refuse);
    const problems = await agree("problems" in found ? found.problems : []);
    if ("problems" in found || problems.length > 0) return { ok: false, problems };
    try {
      current = startingFrom(first, prepare ? await prepare(found.next, current) : found.next);
      hash = configurationHash(current);
      return { ok: true, configuration: current };
    } catch (cause) {
      return { ok: false, problems: [messageOf(cause)] };
    }
  };

  return {
    current: () => current,
    hash: () => hash,
    improve: (change) => {
      const improved = last.then(async () => {
        const next = await change(current);
        if (next === current) return;
        current = next;
        hash = configurationHash(current);
      });
      last = improved;
      return improved;
    },
    reload: (refuse, agree) => {
      const replaced = last.then(() => replace(refuse, agree));
      last = replaced;
      return replaced;
    },
  };
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
