// Receipts of requests, reports and standings (a subject's use of its limits) show the same use, to the nano, for each
// subject and each of its patterns of models. This holds whether the subject was limited from the beginning or in the
// middle of its windows, and whether a request was settled by its own node, by another, or late.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { ReportRow } from "../../../src/admin/store/report.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import { matchesModel } from "../../../src/core/store/budget.ts";
import type { Admit, UsageLimits } from "../../../src/core/store/ledger.ts";
import { databaseKinds, holds, times } from "../../harness/depth.ts";
import { admitOf, checkpointOf, ledgerForTests, settleOf } from "./ledger-stores.ts";
import { models, parents, patterns, Staff } from "./staff.ts";

const minute_ms = 60_000;
const amount = fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 20_000 }));
const limits: fc.Arbitrary<UsageLimits> = fc.record({
  session: amount,
  week: amount,
  month: fc.integer({ min: 1, max: 40_000 }),
  concurrentRequests: fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 4 })),
});
const tokens = fc.integer({ min: 0, max: 300 });
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("admit" as const),
      key: fc.integer({ min: 0, max: 3 }),
      model: fc.constantFrom(...models),
      outputTokens: fc.integer({ min: 1, max: 200 }),
      /** The tokens of the checkpoint that follows the admission. */
      tokens,
      lease_ms: fc.constantFrom(minute_ms / 2, 500 * minute_ms),
    }),
  },
  /** A settlement by the request's own node, which may come after a recovery. */
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("settle" as const), which: fc.nat(), tokens }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("recover" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("read" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("limit" as const), subject: fc.integer({ min: 0, max: 4 }), limits }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("models" as const),
      parent: fc.integer({ min: 0, max: parents - 1 }),
      pattern: fc.integer({ min: 0, max: patterns.length - 1 }),
      limits,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("move" as const), team: fc.option(fc.integer({ min: 0, max: 1 })) }),
  },
);
const history = fc.array(step, { minLength: 10, maxLength: 80 });

/** The requests that a sum covers, by key, person, team and model; an absent member means any. */
interface Part {
  key?: string;
  team?: string;
  person?: string;
  pattern?: string;
}

const runs = { postgres: times(4, 40), pglite: times(2, 20) };

describe.each(databaseKinds(import.meta.path))("sums of subjects on %s", (name) => {
  const { store, book } = ledgerForTests(name, { isBalanced: false });
  test("receipts, reports and standings agree on each subject and each of its patterns", async () => {
    await holds(
      fc.asyncProperty(history, async (steps) => {
        let now_ms = Date.UTC(2026, 1, 27, 12);
        const from = new Date(now_ms);
        await store.setClock(from);
        const id = await store.newOrganization();
        const staff = await Staff.hired(store, id, () => now_ms);
        for (const [key, team] of [0, 1, 0].entries()) await staff.move(key, team);
        const admitted: { admit: Admit; team: string | null }[] = [];

        for (const one of steps) {
          now_ms += minute_ms;
          await store.setClock(new Date(now_ms));
          switch (one.kind) {
            case "admit": {
              const { key, model, outputTokens, lease_ms } = one;
              const asked = { keyId: staff.keys[key]!, model, outputTokens, outputTokens_min: 1, lease_ms };
              const admit = admitOf(id, asked);
              const [answer] = await book.run([admit]);
              if (answer!.answer !== "granted") break;
              admitted.push({ admit, team: staff.teamIdOf(key) });
              await book.run([checkpointOf(admit, { outputTokens: one.tokens }, { lease_ms })]);
              break;
            }
            case "settle": {
              const { admit } = admitted[one.which % Math.max(1, admitted.length)] ?? {};
              const usage = { ...noUsage, outputTokens: one.tokens };
              if (admit) await book.run([settleOf(admit, one.tokens * admit.prices.output, { usage })]);
              break;
            }
            case "recover":
              await book.recover(1000);
              break;
            case "read":
              await book.rollUp();
              break;
            case "limit":
              await staff.limit(one.subject, one.limits);
              break;
            case "models":
              await staff.limitModels(one.parent, one.pattern, one.limits);
              break;
            case "move":
              await staff.move(1, one.team);
          }
        }

        const receipts = await Promise.all(admitted.map(({ admit }) => book.receipt(id, admit.requestId)));
        const to = new Date(from.getTime() + 6 * 60 * minute_ms);
        const query = {
          from,
          to,
          by: ["team", "person", "key", "model"],
          organizationId: id,
          rows_max: 1_000,
        } as const;
        const { rows } = await book.report(query);
        const ofReceipts = (part: Part) =>
          sum(
            admitted.map(({ admit: { keyId, model }, team }, place) => {
              const person = staff.isHers(keyId) ? staff.person : null;
              return isOf(part, { key: keyId, team, person, model }) ? receipts[place]!.nanos.charged : 0;
            }),
          );
        const ofReport = (part: Part) =>
          sum((rows ?? []).map((row) => (isOf(part, placeOf(row)) ? Number(row.nanos) : 0)));

        for (const key of staff.keys)
          for (const { subject, models: pattern, windows } of await book.budgets(id, key)) {
            const team = staff.teamIdOf(staff.keys.indexOf(key));
            const whose: Record<typeof subject, Part> = {
              ...{ key: { key }, person: { person: staff.person }, team: { team: team! }, organization: {} },
            };
            const part = { ...whose[subject], ...(pattern !== undefined && { pattern }) };
            const used = ofReceipts(part);
            const said = { report: ofReport(part), standing: Object.values(windows).map((window) => window.used) };
            expect({ part, ...said }).toEqual({ part, report: used, standing: [used, used, used] });
          }
        expect(await book.check(true)).toEqual([]);
        await store.setClock(new Date(now_ms + 1e11));
        await book.recover(1000); // The next history begins without running requests.
      }),
      runs[name],
    );
  }, 120_000);
});

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);

const placeOf = ({ key, team, person, model }: ReportRow) => ({
  key: key?.id ?? null,
  team: team?.id ?? null,
  person: person?.id ?? null,
  model: model ?? "",
});

function isOf({ pattern, ...part }: Part, place: ReturnType<typeof placeOf>): boolean {
  const names = Object.keys(part) as (keyof typeof part)[];
  return names.every((one) => part[one] === place[one]) && matchesModel(pattern ?? place.model, place.model);
}
