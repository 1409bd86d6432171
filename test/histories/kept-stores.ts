// The statements about kept answers (stored for repeats) that a node sends to the database, over a wire that may fail;
// and the product's own code for kept answers, which uses them.

import type { Ledger } from "../../src/core/store/ledger.ts";
import type { KeptParts } from "../../src/features/responses/dependencies.ts";
import type { KeepingNeeds } from "../../src/features/responses/needs.ts";
import type { KeptAnswers } from "../../src/features/responses/store/kept.ts";
import { type LedgerModel, lateIdOf } from "../core/store/ledger-model.ts";
import type { KeptModel } from "./kept-model.ts";
import { logsOf } from "./logs.ts";
import type { Node } from "./node.ts";
import { carriedOnce } from "./wire.ts";
import type { World } from "./world.ts";

type Receipt = NonNullable<Awaited<ReturnType<Ledger["receipt"]>>>;

function keptPartsOf(world: World, node: Node): KeptParts {
  const statement = <Result>(
    about: string,
    requestIds: readonly string[],
    act: (kept: KeptModel, model: LedgerModel) => Result,
  ): Promise<Result> =>
    carriedOnce(world, node, `${about}-${requestIds[0]}`, (flush_ms) => world.store.keep(requestIds, flush_ms, act));
  const answers: Pick<
    KeptAnswers,
    "begin" | "find" | "respond" | "end" | "measured" | "free" | "abandon" | "makeRoom" | "writeNote"
  > = {
    begin: (kept) => statement("claim", [kept.requestId], (rows) => rows.begin(kept)),
    find: (requestId) => statement("find", [requestId], (rows) => rows.find(requestId)),
    respond: (requestId, ...response) =>
      statement(
        "respond",
        [requestId],
        (rows, { records }) => !records.has(requestId) && rows.respond(requestId, ...response),
      ),
    end: (requestId, end) => statement("end", [requestId], (rows) => rows.end(requestId, end)),
    abandon: (requestId) =>
      statement("abandon", [requestId], (rows, { holds, records }) => {
        const goesOn = holds.has(requestId) || (records.get(requestId)?.charged ?? 0) > 0;
        return goesOn ? !rows.isClaimed(requestId) : rows.abandon(requestId);
      }),
    free: (requestId) => statement("free", [requestId], (rows) => rows.free(requestId)),
    measured: async () => {},
    makeRoom: async () => [],
    writeNote: async () => {},
  };
  return {
    answers: { ...answers, ...world.defects.kept?.(answers as KeptAnswers) } as KeptAnswers,
    logs: logsOf(world, node),
    settings: () => ({ answer_bytes_max: 1e9, organization_bytes_max: 1e9, open_max: 1e9 }),
    grant_ms: () => 3_000,
    clock: node.clock,
    open: new Set(),
    room: { ask() {} },
    metrics: { kept() {}, unkept() {}, replayed() {} },
  };
}

export function keepingNeedsOf(world: World, node: Node): KeepingNeeds {
  return {
    kept: keptPartsOf(world, node),
    ledger: receiptsOf(world, node) as Ledger,
    limits: { first_event_hold_ms: 5_000 } as KeepingNeeds["limits"],
    log: { event() {} } as unknown as KeepingNeeds["log"],
  };
}

/** Receipts with only the fields that a node needs before it reads another run's answer. */
function receiptsOf(world: World, node: Node): Pick<Ledger, "receipt"> {
  const receipt = (requestId: string): Receipt | null => {
    const { holds, records } = world.store.model;
    const hold = holds.get(requestId);
    const record = records.get(requestId);
    if (!hold && !record) return null;
    const charged = (record?.charged ?? 0) + (records.get(lateIdOf(requestId))?.charged ?? 0);
    const createdAt_ms = world.store.kept.createdAt_ms(requestId) ?? 0;
    const endedAt = record ? new Date(world.store.endSeenAt_ms(requestId)) : null;
    const seen = { createdAt: new Date(createdAt_ms), endedAt, recovered: record?.recovered ?? false };
    return { ...seen, nanos: { charged } } as Receipt;
  };
  return {
    receipt: (_, requestId) =>
      carriedOnce(world, node, `receipt-${requestId}`, (flush_ms) =>
        world.store.keep([], flush_ms, () => receipt(requestId)),
      ),
  };
}
