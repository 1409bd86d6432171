/**
 * Asks an engine how it calls the models of the default catalog, at a start, at a reload, and again while it does not run
 * yet: an engine that loads a large model may start long after Sluice.
 */
import type { Configuration } from "../config/configuration.ts";
import type { Reloadable } from "../config/reload.ts";
import { type Repeating, repeating } from "../core/time/clock.ts";

const again_ms = 2_000;

/** The configuration with the engine's names, as far as it says them now, or said them for the configuration `before`. */
export async function named(configuration: Configuration, before = configuration): Promise<Configuration> {
  // Loaded when needed: most services have a catalog of their own.
  return (await import("../config/spelling.ts")).asSpelled(configuration, fetch, before);
}

/** Puts the names into force once the engine says them. A reload may bring another engine, so it goes on. */
export function namedLater(configuration: Reloadable): Repeating {
  const work = async () => {
    if (configuration.current().namesFrom?.isAwaited) await configuration.improve((current) => named(current));
  };
  return repeating(work, { every: again_ms });
}
