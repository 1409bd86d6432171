// Mutations of late settlements (docs/design/metering.md, Rule 5: Settle exactly once): each takes out one thing that must
// hold of them.

import type { LedgerAnswer, Settle } from "../../src/core/store/ledger.ts";
import { LedgerModel, lateIdOf, type ModelRecord } from "../core/store/ledger-model.ts";
import type { Mutation } from "./mutations.ts";
import { ledgerOf } from "./one-by-one.ts";

/** The defect: a request that was recovered is over, whatever its node reports. */
class ForgetsTheRest extends LedgerModel {
  protected override settleLate(): LedgerAnswer {
    return { answer: "already" };
  }
}

/** The defect: a late settlement is booked again although its entry exists. */
class BooksAgain extends LedgerModel {
  protected override settleLate(settle: Settle, record: ModelRecord): LedgerAnswer {
    this.records.delete(lateIdOf(settle.requestId));
    return super.settleLate(settle, record);
  }
}

/** The defect: what the record has charged is charged once more. */
class BooksTheWhole extends LedgerModel {
  protected override settleLate(settle: Settle, record: ModelRecord): LedgerAnswer {
    return super.settleLate(settle, { ...record, charged: 0, uncharged: 0 });
  }
}

/** The defect: all of a late settlement is charged, whatever the limits leave. */
class BooksPastLimits extends LedgerModel {
  protected override settleLate(settle: Settle, record: ModelRecord): LedgerAnswer {
    const answer = super.settleLate(settle, record);
    if (answer.answer !== "late") return answer;
    const entry = this.records.get(answer.entryId)!;
    const { source, windows } = entry;
    const billed = source === "extra" ? [windows!.extra] : [windows!.session, windows!.week, windows!.month];
    for (const { total } of billed) total.used += entry.uncharged;
    entry.charged += entry.uncharged;
    entry.uncharged = 0;
    return answer;
  }
}

/** The defect: the record is written anew, with the sums of both entries. */
class ChangesTheRecord extends LedgerModel {
  protected override settleLate(settle: Settle, record: ModelRecord): LedgerAnswer {
    const answer = super.settleLate(settle, record);
    if (answer.answer !== "late") return answer;
    const { charged, uncharged } = this.records.get(answer.entryId)!;
    this.records.delete(answer.entryId);
    const sums = { charged: record.charged + charged, uncharged: record.uncharged + uncharged };
    this.records.set(settle.requestId, { ...record, ...sums });
    return answer;
  }
}

const lateOf = (model: typeof LedgerModel, seenAs: Mutation["seenAs"]): Mutation => ({
  rule: 5,
  defects: ledgerOf(model),
  seenAs,
});

export const lateMutations: Readonly<Record<string, Mutation>> = {
  "what was forwarded after the last checkpoint is in no book": lateOf(ForgetsTheRest, ["late"]),
  "a late settlement that comes twice is booked twice": lateOf(BooksAgain, ["record"]),
  "a late settlement charges what the record has once more": lateOf(BooksTheWhole, ["late"]),
  "a late settlement charges past the limits": lateOf(BooksPastLimits, ["limit", "sums"]),
  "a late settlement changes the record": lateOf(ChangesTheRecord, ["record"]),
};
