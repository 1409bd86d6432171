// The SQL of budgets against the rules said plainly in memory (budget-model.ts): random histories of commands by keys with
// limits and teams, two of them a person's; limits and defaults for members that change, raises that end, keys and people
// that move, and time that passes. Every answer and every total is compared.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { memberIdOf } from "../../../src/admin/store/limits.ts";
import { newKey as newSecret, secretOf } from "../../../src/core/auth/key.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import { noBudget } from "../../../src/core/store/budget.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import { bare, uuidOf } from "../../../src/core/store/ids.ts";
import type { Command, Ledger, UsageLimits } from "../../../src/core/store/ledger.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { setTeam, sumEarlier } from "../../../src/stores/postgres/budgets.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { databaseKinds, holds, times } from "../../harness/depth.ts";
import { setLimits, setRaise } from "../../harness/limits.ts";
import { issuer, newMember } from "../../harness/members.ts";
import { limitsOfMember, type ModelPeople, type ModelRaise, type ModelSubject, underRaise } from "./budget-model.ts";
import { comparable, LedgerModel, type ModelOrganization } from "./ledger-model.ts";
import {
  admitOf,
  factsOf,
  newHex,
  newRequestId,
  openLedger,
  type Store,
  settleOf,
  unlimited,
} from "./ledger-stores.ts";
import { unrestricted } from "./new-key.ts";

const hour_ms = 3_600_000;
const actor = "cli:test";
const amount = fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 6000 }));
/** Always with one limit at least: what was never limited is tried in budgets.test.ts. */
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
      lease_ms: fc.constantFrom(1_000, hour_ms, 100 * hour_ms),
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
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("extra" as const), enabled: fc.boolean(), capNanos: amount }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("limit" as const), subject: fc.integer({ min: 0, max: 3 }), limits }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("raise" as const),
      /** Then the person, and the organization. */
      subject: fc.integer({ min: 0, max: 5 }),
      raise: fc.option(fc.record({ limits, for_ms: fc.constantFrom(1, hour_ms, 5 * hour_ms, 300 * hour_ms) })),
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
        /** Of the members of a team, or of the organization. */
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

/** A limited key and one that only ever is in a team, both a person's; a limited key of nobody; a key that is nothing; two teams. */
class Staff {
  /** Two limited keys and two teams, and then the person. */
  readonly subjects: (ModelSubject & { base: UsageLimits; raise: ModelRaise | null })[];
  readonly teamOf = new Map<number, number | null>();
  #members: ModelPeople = { own: new Map(), defaults: new Map(), memberships: new Map() };

  private constructor(
    readonly store: Store,
    readonly organization: string,
    readonly person: string,
    readonly keys: readonly string[],
    teams: readonly string[],
    member: string,
    now_ms: () => number,
  ) {
    const ids = [keys[0]!, keys[1]!, ...teams, member];
    this.subjects = ids.map((id, place) => ({
      ...{ id, subject: place < 2 ? "key" : place < 4 ? "team" : "person", base: unlimited, raise: null },
      get limits() {
        return underRaise(this.base, this.raise, now_ms());
      },
    }));
  }

  static async hired(store: Store, organization: string, now_ms: () => number): Promise<Staff> {
    const person = await newMember(store.db, newHex(), { organization });
    const keys = Array.from({ length: 4 }, () => `key_${newHex()}`);
    for (const [place, id] of keys.entries()) await newKeyOf(store, organization, id, isHers(place) ? person : null);
    const teams = [`team_${newHex()}`, `team_${newHex()}`];
    for (const id of teams) {
      const made = { id, organizationId: organization, name: id, limits: noBudget, actor };
      await administration(store.db).createTeam(made);
    }
    const member = memberIdOf(organization, person);
    return new Staff(store, organization, person, keys, teams, member, now_ms);
  }

  async raise(subject: number, raise: ModelRaise | null): Promise<void> {
    this.subjects[subject]!.raise = raise;
    await this.setRaise(this.subjects[subject]!.id, raise);
  }

  async setRaise(id: string, raise: ModelRaise | null): Promise<void> {
    const set = raise && { limits: { ...noBudget, ...raise.limits }, until: new Date(raise.until_ms) };
    await setRaise(this.store.db, { id, organizationId: this.organization }, set);
  }

  async limit(place: number, limits: UsageLimits): Promise<void> {
    const subject = this.subjects[place]!;
    if (subject.subject === "person") return this.limitPerson(limits);
    subject.base = limits;
    const named = { subject: subject.subject, id: subject.id, organizationId: this.organization };
    await setLimits(this.store.db, named, { own: limits });
  }

  async move(key: number, team: number | null): Promise<void> {
    this.teamOf.set(key, team);
    const inTeam = this.#team(key);
    const place = { owner: bare(this.organization, "org_"), team: inTeam && bare(inTeam, "team_") };
    const id = bare(this.keys[key]!, "key_");
    if (await this.store.db.transaction((tx) => setTeam(tx, { id, ...place }))) await sumEarlier(this.store.db, id);
  }

  async limitPerson(limits: UsageLimits | null): Promise<void> {
    const subject = { subject: "person", id: this.person, organizationId: this.organization } as const;
    await setLimits(this.store.db, subject, { own: limits ?? {} });
    this.#refresh({ ...this.#members, own: limits ? new Map([[this.subjects[4]!.id, limits]]) : new Map() });
  }

  /** For the members of a team, or of the organization. */
  async limitMembers(team: number | null, limits: UsageLimits | null): Promise<void> {
    const id = team === null ? this.organization : this.subjects[2 + team]!.id;
    const subject = {
      subject: team === null ? "organization" : "team",
      id,
      organizationId: this.organization,
    } as const;
    await setLimits(this.store.db, subject, { members: limits ?? {} });
    const defaults = new Map(this.#members.defaults);
    if (limits) defaults.set(id, limits);
    else defaults.delete(id);
    this.#refresh({ ...this.#members, defaults });
  }

  /** The person's keys follow them; the keys of a person who is no member stay where they are. */
  async movePerson(team: number | null | "away"): Promise<void> {
    const place = {
      organization: this.organization,
      team: typeof team === "number" ? this.subjects[2 + team]!.id : null,
    };
    const membership = { ...place, role: "member", scopes, models: null } as const;
    const memberships = team === "away" ? [] : [membership];
    const { person } = (await people(this.store.db).findPerson(this.person))!;
    const subject = person.subject!;
    await people(this.store.db).confirm({ id: this.person, issuer, subject, kind: "person", memberships });
    const where = team === "away" ? [] : [[this.subjects[4]!.id, place.team] as const];
    this.#refresh({ ...this.#members, memberships: new Map(where) });
    if (team !== "away") for (const key of this.keys.keys()) if (isHers(key)) this.teamOf.set(key, team);
  }

  of(keyId: string): ModelSubject[] {
    const key = this.keys.indexOf(keyId);
    const team = this.teamOf.get(key) ?? null;
    return [
      ...(key < 2 ? [this.subjects[key]!] : []),
      ...(isHers(key) ? [this.subjects[4]!] : []),
      ...(team === null ? [] : [this.subjects[2 + team]!]),
    ];
  }

  #refresh(members: ModelPeople): void {
    this.#members = members;
    this.subjects[4]!.base = limitsOfMember(members, this.organization, this.subjects[4]!.id);
  }

  #team(key: number): string | null {
    const team = this.teamOf.get(key) ?? null;
    return team === null ? null : this.subjects[2 + team]!.id;
  }
}

const isHers = (key: number): boolean => key === 0 || key === 2;

async function newKeyOf(store: Store, organizationId: string, id: string, personId: string | null): Promise<void> {
  const secret = secretOf(newSecret(crypto.getRandomValues(new Uint8Array(64))));
  await administration(store.db).createKey({
    ...{ ...unrestricted, id, organizationId, name: id, scopes: [...scopes], personId, secret, actor },
  });
}

const runs = { postgres: times(5, 40), pglite: times(3, 15) };

for (const name of databaseKinds(import.meta.path)) {
  describe(`the laws of budgets on ${name}`, () => {
    let store: Store;
    let book: Ledger;
    beforeAll(async () => {
      ({ store, book } = await openLedger(name));
    }, 60_000);
    afterAll(() => store.close(), 30_000);

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
                organization.extra = { enabled: one.enabled, capNanos: one.capNanos };
                await store.db.query(
                  "update organization set extra_usage_enabled = $2, extra_usage_cap_nanos = $3 where id = $1",
                  [uuidOf(id, "org_"), one.enabled, one.capNanos],
                );
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
        runs[name],
      );
    }, 120_000);
  });
}

function modelled(model: LedgerModel, organizationId: string, subjects: readonly ModelSubject[]) {
  const now = model.readings(organizationId, unlimited);
  return subjects.filter(isLimited).map(({ id, subject }) => ({
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

/** Readers are shown those that have a limit at that moment; a person may have none. */
const isLimited = ({ limits }: ModelSubject): boolean => Object.values(limits).some((limit) => limit !== null);

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
      const { inputNanos, outputTokens, lease_ms } = asked;
      const outputTokens_min = Math.min(outputTokens, asked.least);
      const keyId = staff.keys[asked.key]!;
      const held = { inputNanos, outputTokens, outputTokens_min, lease_ms };
      return admitOf(organizationId, { ...facts, keyId, limits: plan, ...held });
    }
    case "grow": {
      const nanosTotal_min = Math.min(asked.least, asked.nanosTotal);
      const { number, nanosTotal } = asked;
      return { verb: "grow", requestId, organizationId, number, limits: plan, nanosTotal, nanosTotal_min };
    }
    case "settle":
      return settleOf({ ...facts, limits: plan }, asked.nanos, { usage: noUsage });
  }
}
