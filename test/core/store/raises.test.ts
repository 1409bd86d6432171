// Raises: limits that count until an instant, on top of those of a plan, a team, a person or a key, on every store.
import { beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { noBudget } from "../../../src/admin/store/budget.ts";
import type { Budget } from "../../../src/core/store/budget.ts";
import { bare } from "../../../src/core/store/ids.ts";
import type { Admit, AdmitAnswer, Command, GrowAnswer } from "../../../src/core/store/ledger.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { limits as limitStore } from "../../../src/stores/postgres/limits.ts";
import { standings } from "../../../src/stores/postgres/standing.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { setRaise } from "../../harness/limits.ts";
import { admitOf, checkpointOf, growOf, ledgerForTests, newHex, noon, settleOf, unlimited } from "./ledger-stores.ts";
import { addKey } from "./made.ts";
import { newSecret } from "./new-key.ts";
import { limitSubject } from "./subject-limits.ts";

setDefaultTimeout(60_000);
const after = (ms: number) => new Date(noon.getTime() + ms);
const hour_ms = 3_600_000;
/** The end of the raises in these tests; below it, the last instant before the end. */
const end = after(hour_ms);
const before = after(hour_ms - 1);

describe.each(databaseKinds(import.meta.path))("raises on %s", (name) => {
  const { store, book, run, admit } = ledgerForTests(name);
  let organization: string;
  const answersOf = async (commands: Command[]) => (await book.run(commands)).map(({ answer }) => answer as string);
  const newKey = () => `key_${newHex()}`;
  /** A request that needs a thousand nanos. */
  const asked = (keyId: string, change: Partial<Admit> = {}) => ({ ...admitOf(organization, change), keyId });
  const limit = (id: string, budget: Partial<Budget>, team: string | null = null) =>
    limitSubject(store.db, organization, id, budget, team);
  const raise = (id: string, limits: Partial<Budget> | null, until = end) =>
    setRaise(store.db, { id, organizationId: organization }, limits && { limits: { ...noBudget, ...limits }, until });
  const shown = async (id: string) => (await standings(store.db).standings([id])).get(id);

  beforeEach(async () => {
    await store.setClock(noon);
    organization = await store.newOrganization();
  });

  test("a key has the raised room until the instant, and from it on the old limit, to the millisecond", async () => {
    const key = newKey();
    await limit(key, { session: 2_000 });
    await raise(key, { session: 5_000 });
    await store.setClock(before);
    expect(await answersOf(Array.from({ length: 4 }, () => asked(key)))).toEqual(Array(4).fill("granted"));
    expect((await shown(key))?.windows.session).toMatchObject({ limit: 5_000, held: 4_000 });
    await store.setClock(end);
    const refused = await admit(asked(key));
    expect(refused).toMatchObject({
      answer: "reserved",
      subjects: [{ subject: "key", windows: { session: { limit: 2_000, held: 4_000 } } }],
    });
    expect((await shown(key))?.windows.session).toMatchObject({ limit: 2_000, held: 4_000 });
    // Only the clock decides: after it steps back, the raised limit is in force again.
    await store.setClock(before);
    expect(await admit(asked(key))).toMatchObject({ answer: "granted" });
  });

  test("what runs grows no further after the end, gives back what is above, and loses nothing that was charged", async () => {
    const key = newKey();
    // The organization's raise outlasts the key's.
    await raise(organization, { session: 9_000 }, after(9 * hour_ms));
    await limit(key, { session: 2_000 });
    await raise(key, { session: 6_000 });
    const [running, other] = [asked(key, { lease_ms: 10 * hour_ms }), asked(key, { lease_ms: 10 * hour_ms })];
    expect(await answersOf([running, other])).toEqual(["granted", "granted"]);
    await store.setClock(before);
    expect(await run<GrowAnswer>(growOf(running, 4_000))).toEqual({ answer: "granted", nanos: 4_000 });
    await store.setClock(end);
    expect(await run<GrowAnswer>(growOf(running, 4_500, 4_500, { number: 2 }))).toMatchObject({ answer: "full" });
    // A second growth command reviews the hold: 3,000 of the 4,000 nanos were delivered already, and stay held.
    const review = growOf(running, 4_000, 3_000, { number: 3 });
    expect(await run<GrowAnswer>(review)).toEqual({ answer: "granted", nanos: 3_000 });
    expect(await run(settleOf(other, 800))).toMatchObject({ charged: 800, uncharged: 0 });
    expect(await run(settleOf(running, 3_000))).toEqual({ answer: "settled", charged: 1_200, uncharged: 1_800 });
    expect((await shown(key))?.windows.session).toMatchObject({ limit: 2_000, used: 2_000, held: 0 });
  });

  test("what is settled before the end is charged under the raise, and stays charged after it", async () => {
    const key = newKey();
    await limit(key, { session: 2_000 });
    await raise(key, { session: 6_000 });
    const command = asked(key, { outputTokens: 400 });
    await admit(command);
    await store.setClock(before);
    expect(await run(settleOf(command, 4_100))).toMatchObject({ charged: 4_100, uncharged: 0 });
    await store.setClock(end);
    expect((await shown(key))?.windows.session).toMatchObject({ limit: 2_000, used: 4_100 });
    expect(await admit(asked(key))).toMatchObject({ answer: "exhausted" });
  });

  test("an organization's raise stands on top of its plan, for it alone, also where others are on the plan", async () => {
    const key = newKey();
    const elsewhere = await store.newOrganization();
    const limits = { ...unlimited, session: 2_000, concurrentRequests: 3 };
    await raise(organization, { session: 5_000, concurrentRequests: 4 });
    const theirs = () => ({ ...admitOf(elsewhere, { limits }), keyId: newKey() });
    const ours = () => asked(key, { limits, lease_ms: 10 * hour_ms });
    const all = [theirs(), ours(), theirs(), ours(), theirs(), ours(), ours(), ours()];
    const answers = (await book.run(all)) as AdmitAnswer[];
    expect(answers.map(({ answer }) => answer as string)).toEqual([
      ...["granted", "granted", "granted", "granted", "reserved", "granted", "granted", "concurrency"],
    ]);
    expect(answers[3]).toMatchObject({ windows: { session: { limit: 5_000, held: 1_000 } } });
    expect(answers[7]).toMatchObject({ concurrentRequests: 4, windows: { session: { limit: 5_000 } } });
    expect(await book.reading(organization, limits)).toMatchObject({
      ...{ concurrentRequests: 4, running: 4 },
      windows: { session: { limit: 5_000, held: 4_000 }, week: { limit: null } },
    });
    expect(await admit(all[1] as Admit)).toMatchObject({ answer: "granted", windows: { session: { limit: 5_000 } } });
    await store.setClock(end);
    expect(await run<GrowAnswer>(growOf(all[1] as Admit, 1_100))).toMatchObject({ answer: "full" });
    const late = await admit(ours());
    expect(late).toMatchObject({ answer: "reserved", kinds: ["session"], windows: { session: { limit: 2_000 } } });
    expect(await book.reading(organization, limits)).toMatchObject({
      ...{ concurrentRequests: 3, windows: { session: { limit: 2_000 } } },
    });
    for (const one of [1, 3, 5, 6]) await run(settleOf(all[one] as Admit, 900));
    expect((await book.windows(organization, limits)).session).toMatchObject({ used: 2_000, held: 0 });
    expect(await book.receipt(organization, all[1]!.requestId)).toMatchObject({ nanos: { charged: 900 } });
  });

  test("a raise never lowers, and what is not limited stays so", async () => {
    const [key, team] = [newKey(), `team_${newHex()}`];
    await limit(team, { week: 1_000 });
    await limit(key, { session: 3_000 }, team);
    await raise(team, { week: 9_000, month: 500 });
    await raise(key, { session: 2_000, concurrentRequests: 1 });
    await raise(organization, { session: 100 });
    expect(await answersOf([asked(key), asked(key), asked(key), asked(key)])).toEqual([
      ...["granted", "granted", "granted", "reserved"],
    ]);
    // The limit is changed while the raise is in force: a limit above the raise counts at once, one below it when the
    // raise is over.
    await limit(key, { session: 8_000 }, team);
    expect((await shown(key))?.windows.session.limit).toBe(8_000);
    await limit(key, { session: 100 }, team);
    expect((await shown(key))?.windows.session.limit).toBe(2_000);
    await store.setClock(end);
    expect((await shown(key))?.windows.session.limit).toBe(100);
    expect((await shown(team))?.windows).toMatchObject({ week: { limit: 1_000 }, month: { limit: null } });
  });

  test("what a node left behind is settled by the raise while it lasts, late too, and from its end on by the limit below", async () => {
    for (const [clock, charged] of [
      [before, 900],
      [end, 300],
    ] as const) {
      await store.setClock(noon);
      organization = await store.newOrganization();
      await store.db.query(
        "insert into plan (name, source, version, session_nanos, changed_at) values ('test', 'file', 1, 300, now()) on conflict do nothing",
      );
      await raise(organization, { session: 5_000 });
      const command = asked(newKey(), { limits: { ...unlimited, session: 300 }, lease_ms: 1_000 });
      await admit(command);
      await run(checkpointOf(command, { outputTokens: 90 }, { lease_ms: 1_000 }));
      await store.setClock(clock);
      expect((await book.recover(10)).settled).toBeGreaterThanOrEqual(1);
      expect(await book.receipt(organization, command.requestId)).toMatchObject({
        nanos: { charged, uncharged: 900 - charged },
      });
      // The request's own node is back. It had delivered more than the lapsed lease was charged for.
      const late = charged === 900 ? 600 : 0;
      const settled = await run(settleOf(command, 1_500));
      expect(settled).toMatchObject({ answer: "late", charged: late, uncharged: 600 - late });
    }
    await store.db.query("delete from plan where name = 'test'");
  });

  test("the directory has raised limits of a minute until the instant, of a key and of a plan", async () => {
    const secret = newSecret();
    const { id } = await addKey(store.db, organization, { secret, limits: { ...noBudget, requestsPerMinute: 5 } });
    const seen = async () => {
      const { rates, overPlan } = (await directory(store.db).credential(secret.hash))!;
      return { rates: rates.map(({ limits }) => limits), raise: overPlan?.raise };
    };
    const below = {
      rates: [{ requestsPerMinute: 5, tokensPerMinute: null }],
      raise: { requestsPerMinute: null, tokensPerMinute: null },
    };
    expect(await seen()).toEqual(below);
    await raise(id, { requestsPerMinute: 50, tokensPerMinute: 900 });
    await raise(organization, { tokensPerMinute: 7_000 }, after(2 * hour_ms));
    await store.setClock(before);
    const ofPlan = { requestsPerMinute: null, tokensPerMinute: 7_000 };
    expect(await seen()).toEqual({ rates: [{ requestsPerMinute: 50, tokensPerMinute: null }], raise: ofPlan });
    await store.setClock(end);
    expect(await seen()).toEqual({ ...below, raise: ofPlan });
    await store.setClock(after(2 * hour_ms));
    expect(await seen()).toEqual(below);
  });

  test("nodes are informed of a raise when it is set, when it ends, and when it is ended early", async () => {
    const told = limitStore(store.db);
    const [key, team] = [newKey(), `team_${newHex()}`];
    await store.db.query("insert into team (id, organization_id, name) values ($1, $2, 'writers')", [
      bare(team, "team_"),
      bare(organization, "org_"),
    ]);
    await limit(key, { week: 1_000 });
    await limit(team, { week: 1_000 });
    let last = await told.changes(null);
    const heard = async () => {
      last = await told.changes(last.number, last.at);
      return last.subjects?.filter((id) => [key, team, organization].includes(id)).toSorted();
    };
    expect(await heard()).toEqual([]);
    await raise(key, { week: 5_000 });
    await raise(team, { week: 5_000 }, after(2 * hour_ms));
    await raise(organization, { week: 5_000 });
    expect(await heard()).toEqual([key, organization, team].toSorted());
    expect(last.nextEnd_ms).toBe(hour_ms);
    await store.setClock(before);
    expect(await heard()).toEqual([]);
    expect(last.nextEnd_ms).toBe(1);
    await store.setClock(end);
    expect(await heard()).toEqual([key, organization].toSorted());
    expect(await heard()).toEqual([]);
    expect(last.nextEnd_ms).toBe(hour_ms);
    await raise(team, null);
    expect(await heard()).toEqual([team]);
    expect((await shown(team))?.windows.week.limit).toBe(1_000);
  });
});
