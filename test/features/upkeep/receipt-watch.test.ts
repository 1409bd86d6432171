/**
 * Each settlement that the database had confirmed and then lost is reported once, whether a node or Redis has the
 * receipt; nothing else is reported.
 */
import { expect, test } from "bun:test";
import { noUsage } from "../../../src/core/inference/usage.ts";
import type { Command } from "../../../src/core/store/ledger.ts";
import { type Moved, type ReceiptWatchParts, receiptWatch } from "../../../src/features/upkeep/receipt-watch.ts";
import type { Confirmed, StoreServer } from "../../../src/features/upkeep/store/lost.ts";
import { admitOf, settleOf } from "../../core/store/ledger-stores.ts";
import { until } from "../../harness/until.ts";

const organization = "org_00000000000070008000000000000001";

/** A fake store that can be set back to an earlier state, and the reports about its losses. */
function world(memory: ReceiptWatchParts["memory"] = null) {
  const has = new Map<string, Confirmed>();
  const noted = new Set<string>();
  const state = { place: { server: "1", timeline: 1 } as StoreServer | null, isAway: false, looks: 0, compared: 0 };
  let seenAt: StoreServer | null = null;
  const moves: Moved[] = [];
  const lost: string[] = [];
  const failures: unknown[] = [];
  const start = () =>
    receiptWatch({
      ledger: {
        async run(commands) {
          return commands.map((command) => {
            const { requestId, organizationId } = command;
            if (command.verb !== "settle" || has.has(requestId)) return { answer: "already" };
            has.set(requestId, { requestId, organizationId, charged: command.nanos });
            return { answer: "settled", charged: command.nanos, uncharged: 0 };
          });
        },
      },
      store: {
        async look(requestId) {
          state.looks += 1;
          if (state.isAway) throw new Error("away");
          const { place } = state;
          const movedFrom = seenAt && place && seenAt.timeline !== place.timeline ? seenAt : null;
          return { ledgerId: "book", place, movedFrom, has: requestId === null || has.has(requestId) };
        },
        async compare(confirmed, place) {
          state.compared += confirmed.length;
          seenAt = place;
          const absent = confirmed.filter(({ requestId }) => !has.has(requestId));
          const fresh = absent.filter(({ requestId }) => !noted.has(requestId));
          for (const { requestId } of fresh) noted.add(requestId);
          return { absent, noted: fresh };
        },
      },
      memory,
      moved: (one) => moves.push(one),
      lost: (some) => lost.push(...some.map(({ requestId }) => requestId)),
      failed: (cause) => failures.push(cause),
      every_ms: 1,
    });
  const looked = async () => {
    const before = state.looks;
    await until(() => state.looks >= before + 3, 5_000, "three looks");
  };
  return { has, state, moves, lost, failures, start, looked };
}

const settle = (): Command => settleOf(admitOf(organization), 700, { usage: noUsage });

test("a store that forgets its last confirmed settlement has all looked for, and each is said once", async () => {
  const { has, state, lost, moves, start, looked } = world();
  const watch = start();
  const commands = Array.from({ length: 5 }, settle);
  await watch.run(commands);
  await looked();
  const { compared } = state;
  await looked();
  // While the store has the last settlement, no earlier ones are compared.
  expect(state.compared).toBe(compared);
  const gone = commands.slice(2).map(({ requestId }) => requestId);
  for (const id of gone) has.delete(id);
  await until(() => lost.length === 3, 5_000, "the lost ones");
  await looked();
  await watch.stop();
  expect(lost).toEqual(gone);
  expect(moves).toEqual([]);
});

test("on another timeline all are looked for, though the last one is there", async () => {
  const { has, state, lost, moves, start, looked } = world();
  const watch = start();
  const commands = Array.from({ length: 3 }, settle);
  await watch.run(commands);
  await looked();
  expect(watch.timeline()).toBe(1);
  has.delete(commands[0]!.requestId);
  state.place = { server: "1", timeline: 2 };
  await until(() => lost.length === 1, 5_000, "the lost one");
  await looked();
  await watch.stop();
  expect(lost).toEqual([commands[0]!.requestId]);
  expect(moves).toEqual([{ from: { server: "1", timeline: 1 }, to: { server: "1", timeline: 2 } }]);
  expect(watch.timeline()).toBe(2);
});

test("what a server does not say about its place is no move, and an outage is none either", async () => {
  const { state, lost, moves, failures, start, looked } = world();
  const watch = start();
  await watch.run([settle()]);
  await looked();
  state.isAway = true;
  await looked();
  state.isAway = false;
  state.place = null;
  await looked();
  state.place = { server: "1", timeline: 1 };
  await looked();
  await watch.stop();
  expect(failures).toHaveLength(1);
  expect([...lost, ...moves]).toEqual([]);
});

test("a node that starts reads the memory beside the store as soon as that is there, and writes into it to the end", async () => {
  const remembered: Confirmed[] = [];
  let isAway = false;
  const memory = {
    async remember(_: string, confirmed: readonly Confirmed[]) {
      if (isAway) throw new Error("away");
      remembered.push(...confirmed);
    },
    async recall() {
      if (isAway) throw new Error("away");
      return remembered;
    },
  };
  const { has, lost, start, looked } = world(memory);
  const before = start();
  const commands = Array.from({ length: 3 }, settle);
  await before.run(commands.slice(0, 2));
  isAway = true;
  await looked();
  isAway = false;
  await before.run(commands.slice(2));
  await before.stop();
  expect(remembered.map(({ requestId }) => requestId).sort()).toEqual(
    commands.map(({ requestId }) => requestId).sort(),
  );

  has.delete(commands[1]!.requestId);
  isAway = true;
  const after = start();
  await looked();
  expect(lost).toEqual([]);
  isAway = false;
  await until(() => lost.length === 1, 5_000, "the lost one");
  await after.stop();
  expect(lost).toEqual([commands[1]!.requestId]);
});
