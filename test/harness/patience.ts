// How long a test waits for an engine, where nothing stands ready beside it.

import { retryBudgets } from "../../src/routing/budget.ts";
import { health } from "../../src/routing/health.ts";
import { pool } from "../../src/routing/pool.ts";
import { queues } from "../../src/routing/queues.ts";
import { replicas } from "../../src/routing/replicas.ts";
import { idleClock } from "../../src/time/clock.ts";
import type { Patience } from "../../src/upstream/ask.ts";
import { client } from "../../src/upstream/http1/client.ts";
import { defaultTimeouts, type UpstreamTimeouts } from "../../src/upstream/target.ts";
import type { AttemptsParts } from "../../src/usage/attempts.ts";
import { LesserDialects } from "../../src/usage/lesser-dialects.ts";

export function patience(timeouts: Partial<UpstreamTimeouts> = {}): Patience {
  const { connect_ms, first_part_ms, idle_ms, total_ms } = { ...defaultTimeouts, ...timeouts };
  return { connect_ms, first_part_ms, idle_ms, total_ms, spare: null };
}

/** The parts of attempts, new for each caller. */
export function attemptsParts(more: Partial<AttemptsParts> = {}): AttemptsParts {
  return {
    client: client(),
    budget: retryBudgets(),
    replicas: replicas(() => []),
    health: health(),
    pool: pool(),
    queues: queues(() => performance.now()),
    shareOf: () => ({ weight: 1, priority: 0 }),
    now_ms: () => performance.now(),
    late_ms: () => 0,
    clock: idleClock(),
    draw: Math.random,
    attempted() {},
    waited() {},
    lost() {},
    lesser: new LesserDialects(),
    firstPart() {},
    settings: () => ({ unstreamed_tokens_max: 512 }),
    ...more,
  };
}
