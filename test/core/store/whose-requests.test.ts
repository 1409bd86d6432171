// Whose a request was: receipts, lists and reports agree on it, with any limits, and whatever becomes of the person's
// membership and of their keys' teams while requests run.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { ListedRequest } from "../../../src/admin/store/request-list.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import { bare, idOf } from "../../../src/core/store/ids.ts";
import type { Admit, Receipt } from "../../../src/core/store/ledger.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { peopleAdministration } from "../../../src/stores/postgres/people-administration.ts";
import { refusedRequests } from "../../../src/stores/postgres/refused.ts";
import { requestList } from "../../../src/stores/postgres/request-list.ts";
import { databaseKinds, holds, times } from "../../harness/depth.ts";
import { setLimits } from "../../harness/limits.ts";
import { emptyBooks } from "./books.ts";
import { admitOf, ledgerForTests, newHex, settleOf } from "./ledger-stores.ts";
import { addKey, addTeam } from "./made.ts";
import { always } from "./report-model.ts";

setDefaultTimeout(120_000);
const actor = "operator:ann";

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("serve" as const),
      key: fc.nat(4),
      nanos: fc.integer({ min: 0, max: 900 }),
      // Whether the request is settled now; otherwise it is settled later, or recovered, or runs on.
      now: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("late" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("move" as const),
      person: fc.nat(1),
      organization: fc.nat(1),
      team: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("limit" as const), person: fc.nat(1), is: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("forget" as const), person: fc.nat(1) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("read" as const), transactions: fc.integer({ min: 1, max: 9 }) }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

const runs = { postgres: times(3, 30), pglite: times(1, 15) };

describe.each(databaseKinds(import.meta.path))("whose requests on %s", (name) => {
  const { store, book } = ledgerForTests(name, { isBalanced: false });
  const newTeam = async (organizationId: string) => (await addTeam(store.db, organizationId)).id;
  async function member(organization: string, team: string | null, id = idOf(Bun.randomUUIDv7(), "per_")) {
    const one = { organization, team, role: "member", scopes, models: null } as const;
    const known = { issuer: "https://login.example", subject: id, kind: "person" } as const;
    await people(store.db).confirm({ id, ...known, name: `Name of ${id}`, memberships: [one] });
    return id;
  }
  async function limit(personId: string, organizationId: string, week: number | null) {
    await setLimits(store.db, { subject: "person", id: personId, organizationId }, { own: { week } });
  }

  /** Makes two organizations, two people with keys in both or in one, and a key that belongs to nobody. */
  async function world() {
    const organizations = [await store.newOrganization(), await store.newOrganization()] as const;
    const teams = await Promise.all(organizations.map(newTeam));
    const people = [await member(organizations[0], teams[0]!), await member(organizations[0], null)] as const;
    const places = [
      [0, 0],
      [1, 0],
      [0, 1],
      [0, null],
      [1, 1],
    ] as const;
    const keys = await Promise.all(
      places.map(async ([at, whose]) => {
        const personId = whose === null ? null : people[whose];
        const teamId = at === 0 && whose === 0 ? teams[0]! : null;
        const { id } = await addKey(store.db, organizations[at], { personId, teamId });
        return { organizationId: organizations[at], personId, id };
      }),
    );
    const asked: { admit: Admit; personId: string | null }[] = [];
    const open: Admit[] = [];
    return { organizations, teams, people, keys, asked, open };
  }
  type World = Awaited<ReturnType<typeof world>>;

  async function act({ organizations, teams, people, keys, asked, open }: World, one: Step): Promise<void> {
    switch (one.kind) {
      case "serve": {
        const key = keys[one.key]!;
        const admit = admitOf(key.organizationId, { keyId: key.id, lease_ms: 3_600_000 });
        const [answer] = await book.run([admit]);
        if (answer!.answer !== "granted") break;
        asked.push({ admit, personId: key.personId });
        if (one.now) await book.run([settleOf(admit, one.nanos)]);
        else open.push(admit);
        break;
      }
      case "late": {
        const admit = open.shift();
        if (admit) await book.run([settleOf(admit, 77)]);
        break;
      }
      case "move":
        await member(organizations[one.organization]!, one.team ? teams[one.organization]! : null, people[one.person]);
        break;
      case "limit":
        await limit(people[one.person]!, organizations[0], one.is ? 1_000_000 : null);
        break;
      case "forget":
        await peopleAdministration(store.db).forgetPerson(people[one.person]!, actor);
        break;
      case "read":
        await store.db.query("select usage_audit_read($1)", [one.transactions]);
        break;
    }
  }

  const receiptOf = async (requestId: string) => (await book.receiptOfAny(requestId))!;

  /** The nanos of ended requests by person, of one organization or of all, as receipts have them. */
  function byPerson(receipts: readonly Receipt[], organizationId: string | null): Map<string | null, number[]> {
    const sums = new Map<string | null, number[]>();
    for (const receipt of receipts) {
      if (receipt.endedAt === null || (organizationId !== null && receipt.organizationId !== organizationId)) continue;
      const [requests = 0, nanos = 0] = sums.get(receipt.personId) ?? [];
      sums.set(receipt.personId, [requests + 1, nanos + receipt.nanos.charged]);
    }
    return sums;
  }

  async function reported(organizationId: string | null, by: ("person" | "key" | "team" | "hour")[]) {
    const { rows } = await book.report({ ...always, by, organizationId, rows_max: 10_000 });
    const sums = new Map<string | null, number[]>();
    for (const { person, requests, nanos } of rows!) {
      const [before = 0, nanosBefore = 0] = sums.get(person!.id) ?? [];
      sums.set(person!.id, [before + requests, nanosBefore + Number(nanos)]);
    }
    return sums;
  }

  async function listed(query: { organizationId: string; personId?: string }): Promise<ListedRequest[]> {
    const all: ListedRequest[] = [];
    for (let before: string | undefined; ; ) {
      const { items, next } = await requestList(store.db).listRequests({ ...query, before, limit: 50 });
      all.push(...items);
      if (next === null) return all;
      before = next;
    }
  }

  test("the report by person is the sum of the receipts, and lists have the same people, after any load", async () => {
    await holds(
      fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 40 }), async (steps) => {
        await emptyBooks(store);
        const one = await world();
        for (const each of steps) await act(one, each);
        const receipts = await Promise.all(one.asked.map(({ admit }) => receiptOf(admit.requestId)));
        expect(receipts.map(({ personId }) => personId)).toEqual(one.asked.map(({ personId }) => personId));
        for (const organizationId of [null, ...one.organizations]) {
          const sums = byPerson(receipts, organizationId);
          for (const by of [["person"], ["person", "key"], ["team", "person"], ["hour", "person"]] as const)
            expect(await reported(organizationId, [...by])).toEqual(sums);
        }
        for (const organizationId of one.organizations) {
          const own = one.asked.filter(({ admit }) => admit.organizationId === organizationId);
          const idsOf = (personId: string | null) =>
            own.filter((each) => each.personId === personId).map(({ admit }) => admit.requestId);
          const all = await listed({ organizationId });
          for (const personId of [...one.people, null]) {
            const hers = all.filter((each) => each.personId === personId).map(({ requestId }) => requestId);
            expect(hers.toSorted()).toEqual(idsOf(personId).toSorted());
            if (personId === null) continue;
            const asked = await listed({ organizationId, personId });
            expect(asked.map(({ requestId }) => requestId).toSorted()).toEqual(idsOf(personId).toSorted());
          }
        }
      }),
      runs[name],
    );
  });

  test("a key keeps its person for good, so that nothing moves what was used", async () => {
    const { organizations, people, keys } = await world();
    const change = (person: string | null) =>
      store.db.query("update api_key set person_id = $2 where id = $1", [
        bare(keys[0]!.id, "key_"),
        person && bare(person, "per_"),
      ]);
    await expect(change(people[1])).rejects.toThrow("The person of a key never changes");
    await expect(change(null)).rejects.toThrow("The person of a key never changes");
    await change(people[0]);
    const nobodys = keys[3]!;
    const given = store.db.query("update api_key set person_id = $2 where id = $1", [
      bare(nobodys.id, "key_"),
      bare(people[0], "per_"),
    ]);
    await expect(given).rejects.toThrow("Make a new key");
    expect(await administration(store.db).findKey(nobodys.id)).toMatchObject({ personId: null });
    expect(organizations).toHaveLength(2);
  });

  test("usage stays in the team in which it was admitted, and with the person", async () => {
    const { organizations, teams, people, keys } = await world();
    const other = await newTeam(organizations[0]);
    const hers = keys[0]!;
    const during = admitOf(organizations[0], { keyId: hers.id });
    await book.run([during]);
    await member(organizations[0], other, people[0]);
    await book.run([settleOf(during, 300)]);
    const after = admitOf(organizations[0], { keyId: hers.id });
    await book.run([after]);
    await book.run([settleOf(after, 20)]);
    const query = { ...always, organizationId: organizations[0], rows_max: 10 };
    const { rows } = await book.report({ ...query, by: ["person", "team"] });
    const used = rows!.map(({ person, team, nanos }) => [person!.id, team!.id, Number(nanos)]);
    expect(used.toSorted((one, two) => Number(two[2]) - Number(one[2]))).toEqual([
      [people[0], teams[0]!, 300],
      [people[0], other, 20],
    ]);
  });

  test("a person is named in reports until they are forgotten; then the id stays", async () => {
    const { organizations, people, keys } = await world();
    const admit = admitOf(organizations[0], { keyId: keys[0]!.id });
    await book.run([admit]);
    await book.run([settleOf(admit, 40)]);
    const query = { ...always, organizationId: organizations[0], by: ["person" as const], rows_max: 10 };
    const persons = async () => (await book.report(query)).rows!.map(({ person }) => person);
    expect(await persons()).toEqual([{ id: people[0], name: `Name of ${people[0]}` }]);
    await peopleAdministration(store.db).forgetPerson(people[0], actor);
    expect(await persons()).toEqual([{ id: people[0], name: null }]);
    expect((await receiptOf(admit.requestId)).personId).toBe(people[0]);
  });

  test("a refused request is of its key's person", async () => {
    const { organizations, people, keys } = await world();
    const refused = refusedRequests(store.db);
    const one = { organizationId: organizations[0], operation: "messages" as const, model: null, stream: null };
    const ids = [`req_${newHex()}`, `req_${newHex()}`] as const;
    await refused.keep([
      { requestId: ids[0], keyId: keys[0]!.id, errorCode: "model_not_found", message: "", age_ms: 0, ...one },
      { requestId: ids[1], keyId: keys[3]!.id, errorCode: "model_not_found", message: "", age_ms: 0, ...one },
    ]);
    expect(await refused.find(ids[0])).toMatchObject({ personId: people[0] });
    expect(await refused.find(ids[1])).toMatchObject({ personId: null });
    expect(await refused.personOf(keys[0]!.id)).toBe(people[0]);
    expect((await listed({ organizationId: organizations[0] })).map(({ personId }) => personId).toSorted()).toEqual(
      [null, people[0]].toSorted(),
    );
    const hers = await listed({ organizationId: organizations[0], personId: people[0] });
    expect(hers.map(({ requestId }) => requestId)).toEqual([ids[0]]);
  });
});
