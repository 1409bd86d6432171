// A person as a subject of the ledger: all keys of a person in an organization share the person's limits, in every store.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { noBudget } from "../../../src/admin/store/budget.ts";
import { memberIdOf } from "../../../src/admin/store/limits.ts";
import type { Budget } from "../../../src/core/store/budget.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import type { Command } from "../../../src/core/store/ledger.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { limits as limitStore } from "../../../src/stores/postgres/limits.ts";
import { peopleAdministration } from "../../../src/stores/postgres/people-administration.ts";
import { standings } from "../../../src/stores/postgres/standing.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { setLimits } from "../../harness/limits.ts";
import { newMember } from "../../harness/members.ts";
import { admitOf, ledgerForTests, noon, settleOf } from "./ledger-stores.ts";
import { addKey, addTeam } from "./made.ts";
import { newSecret } from "./new-key.ts";

setDefaultTimeout(60_000);
const actor = "operator:ann";
const budget = (limits: Partial<Budget>): Budget => ({ ...noBudget, ...limits });

describe.each(databaseKinds(import.meta.path))("people on %s", (name) => {
  const { store, book, run, admit } = ledgerForTests(name, { clock: noon });
  /** A request that needs a thousand nanos. */
  const asked = (organization: string, keyId: string) => ({ ...admitOf(organization), keyId });
  const answersOf = async (commands: Command[]) => (await book.run(commands)).map(({ answer }) => answer as string);

  const member = (organization: string, team: string | null = null) =>
    newMember(store.db, Bun.randomUUIDv7(), { organization, team });
  const newKeyOf = (organizationId: string, personId: string | null, teamId: string | null = null) =>
    addKey(store.db, organizationId, { teamId, personId });
  async function limit(personId: string, organizationId: string, limits: Partial<Budget> | null) {
    await setLimits(store.db, { subject: "person", id: personId, organizationId }, { own: limits ?? {} });
  }
  const counted = (id: string, organizationId: string) =>
    administration(store.db).limitsOf({ subject: "person", id, organizationId });

  test("a person's keys share one limit exactly, and other people's keys and the person's in another organization are not affected", async () => {
    const [acme, other] = [await store.newOrganization(), await store.newOrganization()];
    const ann = await member(acme);
    const keys = await Promise.all([newKeyOf(acme, ann), newKeyOf(acme, ann), newKeyOf(acme, ann)]);
    const [elsewhere, bobs] = [await newKeyOf(other, ann), await newKeyOf(acme, await member(acme))];
    await limit(ann, acme, { session: 5_000 });
    const commands = Array.from({ length: 9 }, (_, n) => asked(acme, keys[n % 3]!.id));
    expect(await answersOf(commands)).toEqual([...Array(5).fill("granted"), ...Array(4).fill("reserved")]);
    expect(await admit(asked(acme, keys[0]!.id))).toMatchObject({
      answer: "reserved",
      kinds: [],
      subjects: [{ subject: "person", windows: { session: { limit: 5_000, held: 5_000 } }, running: 5 }],
    });
    for (const key of [elsewhere, bobs])
      expect(await admit(asked(key === bobs ? acme : other, key.id))).not.toHaveProperty("subjects");
    for (const command of commands.slice(0, 5)) await run(settleOf(command, 1_000));
    expect(await admit(asked(acme, keys[1]!.id))).toMatchObject({ answer: "exhausted", kinds: [] });
    expect(await book.budgets(acme, keys[2]!.id)).toMatchObject([
      { subject: "person", running: 0, windows: { session: { used: 5_000 } } },
    ]);
    const memberId = memberIdOf(acme, ann);
    expect((await standings(store.db).standings([memberId])).get(memberId)).toMatchObject({
      windows: { session: { used: 5_000 } },
    });
    expect(await standings(store.db).nearest("person", 1_000)).toContainEqual(
      expect.objectContaining({ id: memberId }),
    );
  });

  test("key, person and team are counted side by side, in this order, and running requests count for a person who gets a limit", async () => {
    const acme = await store.newOrganization();
    const team = await addTeam(store.db, acme, { limits: budget({ week: 50_000 }) });
    const ann = await member(acme, team.name);
    const key = await newKeyOf(acme, ann, team.id);
    const [running, settled] = [asked(acme, key.id), asked(acme, key.id)];
    await book.run([running, settled]);
    await run(settleOf(settled, 700));
    await limit(ann, acme, { month: 20_000, concurrentRequests: 3 });
    await setLimits(store.db, { subject: "key", id: key.id, organizationId: acme }, { own: { session: 9_000 } });
    expect(await admit(asked(acme, key.id))).toMatchObject({
      answer: "granted",
      teamId: team.id,
      subjects: [
        { subject: "key", windows: { session: { used: 700, held: 1_000 } } },
        { subject: "person", windows: { month: { limit: 20_000, used: 700, held: 1_000 } }, running: 1 },
        { subject: "team", windows: { week: { used: 700 } } },
      ],
    });
    expect(await answersOf([asked(acme, key.id), asked(acme, key.id)])).toEqual(["granted", "concurrency"]);
  });

  test("a person's own limits count before the team's, and those before the organization's; the person follows the membership", async () => {
    const acme = await store.newOrganization();
    const administrator = administration(store.db);
    const team = await addTeam(store.db, acme);
    const whole = { subject: "organization", id: acme, organizationId: acme } as const;
    await setLimits(store.db, { subject: "team", id: team.id, organizationId: acme }, { members: { week: 3_000 } });
    const ann = await member(acme, team.name);
    await setLimits(store.db, whole, { members: { week: 4_000 } });
    const key = await newKeyOf(acme, ann, team.id);
    const weekOf = async () => {
      const { inForce, origins } = (await counted(ann, acme))!;
      return [origins.week, inForce.week];
    };
    expect(await weekOf()).toEqual(["team", 3_000]);
    const first = asked(acme, key.id);
    await run(first);
    await limit(ann, acme, { week: 1_500 });
    expect(await weekOf()).toEqual(["own", 1_500]);
    expect(await admit(asked(acme, key.id))).toMatchObject({ answer: "reserved", subjects: [{ subject: "person" }] });
    await limit(ann, acme, null);
    expect(await weekOf()).toEqual(["team", 3_000]);
    // The person leaves the team while a request runs: the request goes on counting for the person, and the person's
    // key leaves the team too.
    await peopleAdministration(store.db).giveMembership(
      ann,
      { organization: acme, team: null, role: "member", scopes, models: null },
      actor,
    );
    expect(await weekOf()).toEqual(["organization", 4_000]);
    expect((await administrator.findKey(key.id))!.team).toBeNull();
    expect(await answersOf(Array.from({ length: 4 }, () => asked(acme, key.id)))).toEqual([
      "granted",
      "granted",
      "granted",
      "reserved",
    ]);
    await run(settleOf(first, 1_000));
    await setLimits(store.db, whole, { members: {} });
    expect(await weekOf()).toEqual([null, null]);
    expect(await answersOf(Array.from({ length: 9 }, () => asked(acme, key.id)))).toEqual(Array(9).fill("granted"));
  });

  test("every node is informed of a change of a person's limits by the ID, and the person's rates reach the directory", async () => {
    const acme = await store.newOrganization();
    const ann = await member(acme);
    const secret = newSecret();
    await addKey(store.db, acme, { personId: ann, secret });
    const { number } = await limitStore(store.db).changes(null);
    await limit(ann, acme, { requestsPerMinute: 7 });
    expect((await limitStore(store.db).changes(number)).subjects).toEqual([ann]);
    const memberId = memberIdOf(acme, ann);
    expect((await directory(store.db).credential(secret.hash))?.rates).toEqual([
      { limitedBy: "person", id: memberId, limits: { requestsPerMinute: 7, tokensPerMinute: null } },
    ]);
  });
});
