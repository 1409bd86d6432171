/** What attempts at engines have cost for which nobody was charged. Pure. docs/operating.md, Metrics. */
import { promptTokens } from "../inference/usage.ts";
import type { AttemptKind } from "../upstream/attempt.ts";
import type { Tried } from "./opened.ts";
import type { Ended } from "./run.ts";

export interface Uncharged {
  /** Its name in the configuration. */
  upstream: string;
  outcome: AttemptKind;
  /** As expected: of a request that was given up, no engine says what it has read. */
  inputTokens: number;
}

/** An engine with one of these ends has had the request, and may have worked at it. */
const worked = new Set<AttemptKind>(["answered", "empty", "abandoned", "broken", "timeout", "failed", "malformed"]);

/** Of a request that is charged for something, the last attempt is the one that it pays for. */
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
