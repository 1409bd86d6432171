/** Keeps the answers of requests with an idempotency key, and of background responses. */
import type { Principal } from "../../core/auth/verdict.ts";
import type { AnswerSinks } from "../../core/operations/answer.ts";
import { keyHeader } from "../../core/operations/idempotency.ts";
import type { Operation } from "../../core/store/ledger.ts";
import { keptAnswer } from "./answer.ts";
import { Keeping } from "./keeping.ts";
import type { KeepingNeeds } from "./needs.ts";
import { replay } from "./replay.ts";

export function answerSinks(needs: KeepingNeeds): AnswerSinks {
  return {
    sinkOf(call, { principal, operation, headers, digest, isBackground, isStream }) {
      const key = headers?.[keyHeader];
      const isRepeatable = key !== undefined && digest !== null;
      if (!isBackground && !isRepeatable) return null;
      const claim = isRepeatable ? { key: claimOf(principal, operation, key), body: digest } : null;
      const keeping = call.begins(new Keeping(needs, call, principal, { claim, isBackground, isStream }));
      return {
        isRepeatable: keeping.isRepeatable,
        fetched: keeping.fetched,
        follows: (run) => keeping.follows(run),
        answer: (answering) => keptAnswer(keeping, answering),
        async begin() {
          const earlier = await keeping.begin();
          return earlier && { answer: (repeat, adapter) => replay(needs, call, { ...repeat, earlier }, adapter) };
        },
      };
    },
  };
}

/** The hash that identifies a claim. It differs by operation, and by person or key of the organization. */
function claimOf({ key, organization, person }: Principal, operation: Operation, idempotencyKey: string): string {
  const hash = new Bun.CryptoHasher("sha256");
  return hash.update(JSON.stringify([organization.id, person?.id ?? key.id, operation, idempotencyKey])).digest("hex");
}
