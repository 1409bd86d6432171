/** The cost of attempts at engines that nobody was charged for: docs/operating.md, Metrics. Pure. */
import { promptTokens } from "../inference/usage.ts";
import type { AttemptKind } from "../upstream/attempt.ts";
import type { Tried } from "./engine-answer.ts";
import type { Ended } from "./run.ts";

export interface Uncharged {
  /** Its name in the configuration. */
  upstream: string;
  outcome: AttemptKind;
  /** The expected tokens: no engine reports what it has read of a request that was given up. */
  inputTokens: number;
}

/** An attempt with one of these ends reached the engine, which may have worked on it. */
const worked = new Set<AttemptKind>(["answered", "empty", "abandoned", "broken", "timeout", "failed", "malformed"]);

/** The attempts that cost something and were charged to nobody. A request that is charged pays for its last attempt. */
export function unchargedAttempts({
  tried,
  usage,
  inputTokensExpected,
}: Pick<Ended, "tried" | "usage" | "inputTokensExpected">): Uncharged[] {
  const isCharged = promptTokens(usage) + usage.outputTokens > 0;
  const inVain = isCharged ? tried.slice(0, -1) : tried;
  return inVain
    .filter(({ outcome }: Tried) => worked.has(outcome))
    .map(({ upstream, outcome }) => ({ upstream, outcome, inputTokens: inputTokensExpected }));
}
