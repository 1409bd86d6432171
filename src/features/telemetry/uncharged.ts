/** The cost of attempts at engines that was charged to nobody: docs/operating.md, Metrics. Pure. */
import { promptTokens } from "../../core/inference/usage.ts";
import type { AttemptKind } from "../../core/upstream/attempt.ts";
import type { Ended, Tried } from "../../core/usage/record.ts";

interface Uncharged {
  /** The engine's name in the configuration. */
  upstream: string;
  outcome: AttemptKind;
  /** The expected tokens of the input: no engine reports what it has read of a request that was given up. */
  inputTokens: number;
}

/** The outcomes of attempts that reached the engine, which may have worked on them. */
const worked = new Set<AttemptKind>(["answered", "empty", "abandoned", "broken", "timeout", "failed", "malformed"]);

/** The attempts that cost something and were charged to nobody. A charged request pays for the last that worked on it. */
export function unchargedAttempts({
  tried,
  usage,
  inputTokensExpected,
}: Pick<Ended, "tried" | "usage" | "inputTokensExpected">): Uncharged[] {
  const isCharged = promptTokens(usage) + usage.outputTokens > 0;
  const costly = tried.filter(({ outcome }: Tried) => worked.has(outcome));
  return costly
    .slice(0, isCharged ? -1 : costly.length)
    .map(({ upstream, outcome }) => ({ upstream, outcome, inputTokens: inputTokensExpected }));
}
