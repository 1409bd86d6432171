// Receipts, lists and reports name the key, person and team of a request, whatever becomes of the person's membership
// and of the teams of their keys while requests run.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ListedRequest } from "../../../src/admin/store/request-list.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import { bare, idOf } from "../../../src/core/store/ids.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { peopleAdministration } from "../../../src/stores/postgres/people-administration.ts";
import { refusedRequests } from "../../../src/stores/postgres/refused.ts";
import { requestList } from "../../../src/stores/postgres/request-list.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { admitOf, ledgerForTests, newHex, settleOf } from "./ledger-stores.ts";
import { addKey, addTeam } from "./made.ts";
import { always } from "./report-model.ts";

setDefaultTimeout(120_000);
const actor = "operator:ann";

describe.each(databaseKinds(import.meta.path))("whose requests on %s", (name) => {
  const { store, book } = ledgerForTests(name, { isBalanced: false });
  const newTeam = async (organizationId: string) => (await addTeam(store.db, organizationId)).id;
  async function member(organization: string, team: string | null, id = idOf(Bun.randomUUIDv7(), "per_")) {
    const one = { organization, team, role: "member", scopes, models: null } as const;
    const known = { issuer: "https://login.example", subject: id, kind: "person" } as const;
    await people(store.db).confirm({ id, ...known, name: `Name of ${id}`, memberships: [one] });
    return id;
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
    return { organizations, teams, people, keys };
  }
  const receiptOf = async (requestId: string) => (await book.receiptOfAny(requestId))!;

  async function listed(query: { organizationId: string; personId?: string }): Promise<ListedRequest[]> {
    const all: ListedRequest[] = [];
    for (let before: string | undefined; ; ) {
      const { items, next } = await requestList(store.db).listRequests({ ...query, before, limit: 50 });
      all.push(...items);
      if (next === null) return all;
      before = next;
    }
  }

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
