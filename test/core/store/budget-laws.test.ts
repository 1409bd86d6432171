// Compares the SQL of budgets with a reference model in memory (budget-model.ts) under random histories: commands by
// keys with limits and teams (two of the keys belong to a person); limits and defaults for members that change, limits
// for models, raises (temporary increases of limits) that end, keys and people that move, and time that passes. Every
// answer and every total must be equal.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { noUsage } from "../../../src/core/inference/usage.ts";
import type { Admit, Command, UsageLimits } from "../../../src/core/store/ledger.ts";
import { databaseKinds, holds, times } from "../../harness/depth.ts";
import type { ModelSubject } from "./budget-model.ts";
import { amount, batchOf, extraUsage, lease, recovery, setExtra, time } from "./law-steps.ts";
import { comparable, LedgerModel, type ModelOrganization } from "./ledger-model.ts";
import { admitOf, expectChecked, growOf, ledgerForTests, settleOf, unlimited } from "./ledger-stores.ts";
import { models, parents, patterns, Staff } from "./staff.ts";

const hour_ms = 3_600_000;
/** At least one limit is always set: budgets.test.ts covers subjects that were never limited. */
const limits: fc.Arbitrary<UsageLimits> = fc.record({
  session: amount,
  week: amount,
  month: fc.integer({ min: 1, max: 9000 }),
  concurrentRequests: fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 3 })),
});
const which = fc.integer({ min: 0, max: 9 });
const nanosOf = (max: number) => fc.integer({ min: 0, max });
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      ...{ verb: fc.constant("admit" as const), which, key: fc.integer({ min: 0, max: 3 }) },
      inputNanos: nanosOf(800),
      outputTokens: fc.integer({ min: 1, max: 200 }),
      least: fc.integer({ min: 1, max: 200 }),
      lease_ms: lease,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      ...{ verb: fc.constant("grow" as const), which, number: fc.integer({ min: 1, max: 4 }) },
      ...{ nanosTotal: nanosOf(4000), least: nanosOf(4000) },
    }),
  },
  { weight: 3, arbitrary: fc.record({ verb: fc.constant("settle" as const), which, nanos: nanosOf(3000) }) },
);
const step = fc.oneof(
  { weight: 8, arbitrary: batchOf(command) },
  { weight: 3, arbitrary: time },
  { weight: 1, arbitrary: recovery },
  { weight: 1, arbitrary: extraUsage },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("limit" as const), subject: fc.integer({ min: 0, max: 3 }), limits }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("raise" as const),
      /** 0 to 3 are the subjects as in the step `limit`, 4 is the person, and 5 the organization. */
      subject: fc.integer({ min: 0, max: 5 }),
      raise: fc.option(fc.record({ limits, for_ms: fc.constantFrom(1, hour_ms, 5 * hour_ms, 300 * hour_ms) })),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("models" as const),
      parent: fc.integer({ min: 0, max: parents - 1 }),
      pattern: fc.integer({ min: 0, max: patterns.length - 1 }),
      limits: fc.option(limits, { nil: unlimited, freq: 6 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("move" as const),
      key: fc.integer({ min: 1, max: 1 }),
      team: fc.option(fc.integer({ min: 0, max: 1 })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("person" as const),
      change: fc.oneof(
        fc.record({ act: fc.constant("limit" as const), limits: fc.option(limits) }),
        /** The default limits of the members of a team, or of the organization. */
        fc.record({
          act: fc.constant("default" as const),
          team: fc.option(fc.integer({ min: 0, max: 1 })),
          limits: fc.option(limits),
        }),
        fc.record({
          act: fc.constant("move" as const),
          team: fc.oneof(fc.constantFrom(null, "away" as const), fc.integer({ min: 0, max: 1 })),
        }),
      ),
    }),
  },
);
const history = fc.record({
  plan: fc.record({ session: amount, week: amount, month: amount, concurrentRequests: fc.constant(null) }),
  first: fc.tuple(limits, limits, limits, limits, limits),
  steps: fc.array(step, { minLength: 5, maxLength: 40 }),
});

const runs = { postgres: times(5, 40), pglite: times(3, 15) };

describe.each(databaseKinds(import.meta.path))("the laws of budgets on %s", (name) => {
  const { store, book } = ledgerForTests(name, { isBalanced: false });
  test("any history of limited keys is answered and booked as the rules say", async () => {
    await holds(
      fc.asyncProperty(history, async ({ plan, first, steps }) => {
        let now_ms = Date.UTC(2026, 1, 27, 12);
        await store.setClock(new Date(now_ms));
        const id = await store.newOrganization();
        const staff = await Staff.hired(store, id, () => now_ms);
        const whole = { weekFrom_ms: Number.NEGATIVE_INFINITY, monthFrom_ms: Number.NEGATIVE_INFINITY };
        const organization: ModelOrganization = {
          anchors: [{ at_ms: Date.UTC(2026, 0, 31, 10), ...whole }],
          extra: { enabled: false, capNanos: null },
          subjectsOf: (keyId, model) => staff.of(keyId, model),
        };
        const model = new LedgerModel(new Map([[id, organization]]), () => now_ms);
        for (const [place, limits] of first.entries()) await staff.limit(place, limits);
        const requests = Array.from({ length: 10 }, (_, at) => admitOf(id, { model: models[at % models.length]! }));

        for (const one of steps) {
          switch (one.kind) {
            case "batch": {
              const commands = one.commands.map((asked) => commandOf(asked, requests, staff, plan));
              expect(comparable(await book.run(commands))).toEqual(comparable(model.run(commands)));
              break;
            }
            case "time":
              now_ms += one.by_ms;
              await store.setClock(new Date(now_ms));
              break;
            case "recover": {
              // A request whose plan is not defined is recovered under the limits under which it was admitted.
              expect((await book.recover(1000)).settled).toBe(model.recover(1000));
              break;
            }
            case "extra":
              organization.extra = await setExtra(store, id, one);
              break;
            case "limit":
              await staff.limit(one.subject, one.limits);
              break;
            case "raise": {
              const { subject, raise } = one;
              const set = raise && { limits: raise.limits, until_ms: now_ms + raise.for_ms };
              if (subject < 5) await staff.raise(subject, set);
              else {
                organization.raise = set;
                await staff.setRaise(id, set);
              }
              break;
            }
            case "models":
              await staff.limitModels(one.parent, one.pattern, one.limits);
              break;
            case "move":
              await staff.move(one.key, one.team);
              break;
            case "person": {
              const { change } = one;
              if (change.act === "limit") await staff.limitPerson(change.limits);
              else if (change.act === "default") await staff.limitMembers(change.team, change.limits);
              else await staff.movePerson(change.team);
            }
          }
        }

        for (const key of staff.keys) {
          const own = await book.budgets(id, key);
          const windows = own.map(({ subject, models, windows: { session, week, month }, running }) => ({
            ...{ subject, models, running, totals: [session, week, month].map(({ used, held }) => ({ used, held })) },
          }));
          expect(inOrder(windows)).toEqual(inOrder(modelled(model, id, staff.of(key))));
        }
        await expectChecked(book);
        await store.setClock(new Date(now_ms + 1e11));
        await book.recover(1000); // The next history begins without running requests.
      }),
      runs[name],
    );
  }, 120_000);
});

function modelled(model: LedgerModel, organizationId: string, subjects: readonly ModelSubject[]) {
  const now = model.readings(organizationId, unlimited);
  return subjects.filter(isLimited).map(({ id, subject, models }) => ({
    subject,
    models,
    running: [...model.holds.values()].filter(({ own }) => own.some((one) => one.subject.id === id)).length,
    totals: (["session", "week", "month"] as const).map((kind) => {
      const window = model.budgets
        .windows(id)
        .find((one) => one.kind === kind && one.startsAt_ms === now[kind].startsAt.getTime());
      return window ? { ...window.total } : { used: 0, held: 0 };
    }),
  }));
}

const inOrder = <One extends { subject: string; models: string | undefined }>(all: One[]): One[] =>
  all.toSorted((a, b) => (`${a.subject} ${a.models}` < `${b.subject} ${b.models}` ? -1 : 1));

/**
 * Whether the subject has a limit at this moment: `budgets` returns only such subjects, and a person may have no limit.
 */
const isLimited = ({ limits }: ModelSubject): boolean => Object.values(limits).some((limit) => limit !== null);

type GeneratedCommand = typeof command extends fc.Arbitrary<infer T> ? T : never;

function commandOf(asked: GeneratedCommand, requests: readonly Admit[], staff: Staff, plan: UsageLimits): Command {
  const request = { ...requests[asked.which]!, limits: plan };
  switch (asked.verb) {
    case "admit": {
      const { inputNanos, outputTokens, lease_ms } = asked;
      const outputTokens_min = Math.min(outputTokens, asked.least);
      return { ...request, keyId: staff.keys[asked.key]!, inputNanos, outputTokens, outputTokens_min, lease_ms };
    }
    case "grow": {
      const { number, nanosTotal, least } = asked;
      return growOf(request, nanosTotal, Math.min(least, nanosTotal), { number });
    }
    case "settle":
      return settleOf(request, asked.nanos, { usage: noUsage });
  }
}
