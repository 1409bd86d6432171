/**
 * Asks an engine how it calls the models of the default catalog, at a start, at a reload, and again while it does not run
 * yet: an engine that loads a large model may start long after Sluice. It is also asked again once it does not know a
 * name that it listed: somebody may have started it with another model.
 */
import { isDeepStrictEqual } from "node:util";
import type { Configuration } from "../config/configuration.ts";
import type { Reloadable } from "../config/reload.ts";
import type { Log } from "../core/http/log.ts";
import { type Repeating, repeating } from "../core/time/clock.ts";

const again_ms = 2_000;
/** The pause between two questions grows with each question by `again_ms`, up to this many times `again_ms`. */
const turns_max = 5;

/**
 * The configuration with the engine's names for the models: those that it lists now, else those that it listed for the
 * configuration `before`.
 */
export async function named(configuration: Configuration, before = configuration): Promise<Configuration> {
  // Loaded when needed: most services have a catalog of their own.
  return (await import("../config/spelling.ts")).asSpelled(configuration, fetch, before);
}

/**
 * Puts the names into force once the engine says them, and logs that, or each new notice once. A reload may bring another
 * engine, so it goes on. `doubt`: an engine did not know a name, so it is asked again.
 */
export function namedLater(configuration: Reloadable, log: Log): Repeating & { doubt(): void } {
  const said = new Set(configuration.current().notices);
  let turns = 1;
  let left = 0;
  let isDoubted = false;
  const work = async () => {
    const { namesFrom } = configuration.current();
    if (!namesFrom || !(namesFrom.isAwaited || isDoubted) || left-- > 0) return;
    isDoubted = false;
    turns = Math.min(turns + 1, turns_max);
    left = turns - 1;
    await configuration.improve(async (current) => {
      const next = await named(current);
      return isDeepStrictEqual(next.namesFrom, current.namesFrom) ? current : next;
    });
    const { notices, namesFrom: next } = configuration.current();
    for (const notice of notices.filter((one) => !said.has(one))) log.event("warn", "notice", { notice });
    for (const notice of notices) said.add(notice);
    if (next?.isAwaited === false && next !== namesFrom)
      log.event("info", "engine_names", { hash: configuration.hash() });
  };
  return {
    ...repeating(work, { every: again_ms }),
    doubt() {
      isDoubted = true;
    },
  };
}
