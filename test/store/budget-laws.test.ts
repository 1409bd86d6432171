// The SQL of budgets against the rules said plainly in memory (budget-model.ts): random histories of commands by keys with
// limits and teams, limits that change, raises that end, keys that move, time that passes and clocks that step back; every answer and every
// total compared.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { noUsage } from "../../src/inference/usage.ts";
import { type Subject, setSubject, sumEarlier } from "../../src/postgres/budgets.ts";
import { ledger } from "../../src/postgres/ledger.ts";
import { raises } from "../../src/postgres/raises.ts";
import { noBudget } from "../../src/store/budget.ts";
import { bare, uuidOf } from "../../src/store/ids.ts";
import type { Command, Ledger, UsageLimits } from "../../src/store/ledger.ts";
import type { RaiseSubject } from "../../src/store/raise.ts";
import { cases, times } from "../harness/depth.ts";
import { type ModelRaise, type ModelSubject, underRaise } from "./budget-model.ts";
import { comparable, LedgerModel, type ModelOrganization } from "./ledger-model.ts";
import { admitOf, factsOf, newHex, newRequestId, type Store, settleOf, stores, unlimited } from "./ledger-stores.ts";

const hour_ms = 3_600_000;
const amount = fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 6000 }));
/** Always with one limit at least: what was never limited is tried in budgets.test.ts. */
const limits: fc.Arbitrary<UsageLimits> = fc.record({
  session: amount,
  week: amount,
  month: fc.integer({ min: 1, max: 9000 }),
  concurrentRequests: fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 3 })),
});
const which = fc.integer({ min: 0, max: 9 });
const unitsOf = (max: number) => fc.integer({ min: 0, max });
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      ...{ verb: fc.constant("admit" as const), which, key: fc.integer({ min: 0, max: 3 }) },
      inputUnits: unitsOf(800),
      outputTokens: fc.integer({ min: 1, max: 200 }),
      least: fc.integer({ min: 1, max: 200 }),
      lease_ms: fc.constantFrom(1_000, hour_ms, 100 * hour_ms),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      ...{ verb: fc.constant("grow" as const), which, number: fc.integer({ min: 1, max: 4 }) },
      ...{ unitsTotal: unitsOf(4000), least: unitsOf(4000) },
    }),
  },
  { weight: 3, arbitrary: fc.record({ verb: fc.constant("settle" as const), which, units: unitsOf(3000) }) },
);
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("batch" as const),
      commands: fc.uniqueArray(command, { minLength: 1, maxLength: 8, selector: (one) => one.which }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("time" as const),
      by_ms: fc.oneof(
        fc.integer({ min: 0, max: 2 * hour_ms }),
        fc.constantFrom(1, 5 * hour_ms, 168 * hour_ms),
        fc.integer({ min: 0, max: 40 * 24 * hour_ms }),
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("recover" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("extra" as const), enabled: fc.boolean(), capUnits: amount }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("limit" as const), subject: fc.integer({ min: 0, max: 3 }), limits }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("raise" as const),
      /** The last is the organization. */
      subject: fc.integer({ min: 0, max: 4 }),
      raise: fc.option(fc.record({ limits, for_ms: fc.constantFrom(1, hour_ms, 5 * hour_ms, 300 * hour_ms) })),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("move" as const),
      key: fc.integer({ min: 0, max: 2 }),
      team: fc.option(fc.integer({ min: 0, max: 1 })),
    }),
  },
);
const history = fc.record({
  plan: fc.record({ session: amount, week: amount, month: amount, concurrentRequests: fc.constant(null) }),
  first: fc.tuple(limits, limits, limits, limits),
  steps: fc.array(step, { minLength: 5, maxLength: 40 }),
});

/** Two limited keys, one that only ever is in a team, one that is nothing; two teams. */
class Staff {
  readonly keys = Array.from({ length: 4 }, () => `key_${newHex()}`);
  readonly subjects: (ModelSubject & { base: UsageLimits; raise: ModelRaise | null })[];
  readonly teamOf = new Map<number, number | null>();

  constructor(
    readonly store: Store,
    readonly organization: string,
    readonly now_ms: () => number,
    first: readonly UsageLimits[],
  ) {
    const ids = [this.keys[0]!, this.keys[1]!, `team_${newHex()}`, `team_${newHex()}`];
    this.subjects = ids.map((id, place) => ({
      ...{ id, subject: place < 2 ? "key" : "team", base: first[place]!, raise: null },
      get limits() {
        return underRaise(this.base, this.raise, now_ms());
      },
    }));
  }

  async raise(subject: number, raise: ModelRaise | null): Promise<void> {
    const { id, subject: kind } = this.subjects[subject]!;
    this.subjects[subject]!.raise = raise;
    await this.setRaise({ subject: kind, id }, raise);
  }

  async setRaise(whose: Pick<RaiseSubject, "subject" | "id">, raise: ModelRaise | null): Promise<void> {
    const set = raise && { limits: { ...noBudget, ...raise.limits }, until: new Date(raise.until_ms) };
    const subject = { ...whose, organizationId: this.organization, audited: whose.id };
    await raises(this.store.db).setRaise(subject, set, "cli:test");
  }

  async limit(place: number, limits: UsageLimits): Promise<void> {
    const subject = this.subjects[place]!;
    subject.base = limits;
    await this.#set(subject.id, subject.subject === "key" ? this.#team(place) : null, limits);
  }

  async move(key: number, team: number | null): Promise<void> {
    this.teamOf.set(key, team);
    await this.#set(this.keys[key]!, this.#team(key), this.#limits(key));
  }

  of(keyId: string): ModelSubject[] {
    const key = this.keys.indexOf(keyId);
    const team = this.teamOf.get(key) ?? null;
    return [...(key < 2 ? [this.subjects[key]!] : []), ...(team === null ? [] : [this.subjects[2 + team]!])];
  }

  #team(key: number): string | null {
    const team = this.teamOf.get(key) ?? null;
    return team === null ? null : this.subjects[2 + team]!.id;
  }

  #limits(key: number): UsageLimits {
    return key < 2 ? this.subjects[key]!.base : unlimited;
  }

  async #set(named: string, inTeam: string | null, budget: UsageLimits): Promise<void> {
    const organization = bare(this.organization, "org_");
    const id = bare(named, named.startsWith("key_") ? "key_" : "team_");
    const team = inTeam && bare(inTeam, "team_");
    const subject: Subject = { id, organization, team, budget: { ...noBudget, ...budget } };
    if (await this.store.db.transaction((tx) => setSubject(tx, subject))) await sumEarlier(this.store.db, id);
  }
}

for (const [name, runs] of [
  ["postgres", times(15, 40)],
  ["pglite", times(6, 15)],
] as const) {
  describe(`the laws of budgets on ${name}`, () => {
    let store: Store;
    let book: Ledger;
    beforeAll(async () => {
      store = await stores[name]();
      book = ledger(store.db, { recovery: "checkpoint" });
    }, 60_000);
    afterAll(async () => {
      await book.close();
      await store.close();
    }, 30_000);

    test("any history of limited keys is answered and booked as the rules say", async () => {
      await fc.assert(
        fc.asyncProperty(history, async ({ plan, first, steps }) => {
          let now_ms = Date.UTC(2026, 1, 27, 12);
          await store.setClock(new Date(now_ms));
          const id = await store.newOrganization();
          const staff = new Staff(store, id, () => now_ms, first);
          const whole = { weekFrom_ms: Number.NEGATIVE_INFINITY, monthFrom_ms: Number.NEGATIVE_INFINITY };
          const organization: ModelOrganization = {
            anchors: [{ at_ms: Date.UTC(2026, 0, 31, 10), ...whole }],
            extra: { enabled: false, capUnits: null },
            subjectsOf: (keyId) => staff.of(keyId),
          };
          const model = new LedgerModel(new Map([[id, organization]]), () => now_ms);
          for (const [place, limits] of first.entries()) await staff.limit(place, limits);
          const requests = Array.from({ length: 10 }, () => factsOf(id, newRequestId()));

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
                // A plan that is not defined leaves the limits that a request was admitted under.
                expect((await book.recover(1000)).settled).toBe(model.recover(1000));
                break;
              }
              case "extra":
                organization.extra = { enabled: one.enabled, capUnits: one.capUnits };
                await store.db.query(
                  "update organization set extra_usage_enabled = $2, extra_usage_cap_units = $3 where id = $1",
                  [uuidOf(id, "org_"), one.enabled, one.capUnits],
                );
                break;
              case "limit":
                await staff.limit(one.subject, one.limits);
                break;
              case "raise": {
                const { subject, raise } = one;
                const set = raise && { limits: raise.limits, until_ms: now_ms + raise.for_ms };
                if (subject < 4) await staff.raise(subject, set);
                else {
                  organization.raise = set;
                  await staff.setRaise({ subject: "organization", id }, set);
                }
                break;
              }
              case "move":
                await staff.move(one.key, one.team);
            }
          }

          for (const key of staff.keys) {
            const own = await book.budgets(id, key);
            const windows = own.map(({ subject, windows: { session, week, month }, running }) => ({
              ...{ subject, running, totals: [session, week, month].map(({ used, held }) => ({ used, held })) },
            }));
            expect(windows).toEqual(modelled(model, id, staff.of(key)));
          }
          expect(await book.check()).toEqual([]);
          expect(await book.check(true)).toEqual([]);
          await store.setClock(new Date(now_ms + 1e11));
          await book.recover(1000); // the next history begins with an empty house
        }),
        cases(runs),
      );
    }, 120_000);
  });
}

function modelled(model: LedgerModel, organizationId: string, subjects: readonly ModelSubject[]) {
  const now = model.readings(organizationId, unlimited);
  return subjects.map(({ id, subject }) => ({
    subject,
    running: [...model.holds.values()].filter(({ own }) => own.some((one) => one.subject.id === id)).length,
    totals: (["session", "week", "month"] as const).map((kind) => {
      const window = model.budgets
        .windows(id)
        .find((one) => one.kind === kind && one.startsAt_ms === now[kind].startsAt.getTime());
      return window ? { ...window.total } : { used: 0, held: 0 };
    }),
  }));
}

type GeneratedCommand = typeof command extends fc.Arbitrary<infer T> ? T : never;

function commandOf(
  asked: GeneratedCommand,
  requests: readonly ReturnType<typeof factsOf>[],
  staff: Staff,
  plan: UsageLimits,
): Command {
  const facts = requests[asked.which]!;
  const { requestId, organizationId } = facts;
  switch (asked.verb) {
    case "admit": {
      const { inputUnits, outputTokens, lease_ms } = asked;
      const outputTokens_min = Math.min(outputTokens, asked.least);
      const keyId = staff.keys[asked.key]!;
      const held = { inputUnits, outputTokens, outputTokens_min, lease_ms };
      return admitOf(organizationId, { ...facts, keyId, limits: plan, ...held });
    }
    case "grow": {
      const unitsTotal_min = Math.min(asked.least, asked.unitsTotal);
      const { number, unitsTotal } = asked;
      return { verb: "grow", requestId, organizationId, number, limits: plan, unitsTotal, unitsTotal_min };
    }
    case "settle":
      return settleOf({ ...facts, limits: plan }, asked.units, { usage: noUsage });
  }
}
