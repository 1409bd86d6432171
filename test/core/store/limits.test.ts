// The store's announcements of changed limits: numbered in the order of commits, and sent to every node.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { noBudget } from "../../../src/admin/store/budget.ts";
import type { Budget } from "../../../src/core/store/budget.ts";
import { bare } from "../../../src/core/store/ids.ts";
import type { AdmitAnswer } from "../../../src/core/store/ledger.ts";
import type { LimitStore } from "../../../src/core/store/plan.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { sumEarlier } from "../../../src/stores/postgres/budgets.ts";
import { limits } from "../../../src/stores/postgres/limits.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { setSubject } from "../../harness/limits.ts";
import { until } from "../../harness/until.ts";
import { lockAwaited } from "../../stores/postgres/databases.ts";
import { admitOf, ledgerForTests, newHex, settleOf } from "./ledger-stores.ts";
import { addTeam } from "./made.ts";
import { setBudget } from "./subject-limits.ts";

setDefaultTimeout(60_000);

describe.each(databaseKinds(import.meta.path))("limits that change on %s", (name) => {
  const { store, book } = ledgerForTests(name, { isBalanced: false });
  let told: LimitStore;
  let organization: string;
  beforeAll(async () => {
    told = limits(await store.another());
    organization = await store.newOrganization();
  });

  const number = async () => (await told.changes(null)).number;
  const set = (key: string, budget: Partial<Budget>, team: string | null = null) =>
    setBudget(store.db, organization, key, budget, team);
  const newKey = () => `key_${newHex()}`;

  test("a key, a team and an organization's extra usage are named when their limits change, once for all changes", async () => {
    const acts = administration(store.db);
    const since = await number();
    expect(await told.changes(since)).toMatchObject({ number: since, subjects: [] });
    const key = newKey();
    await set(key, { session: 5 });
    await set(key, { session: 7 });
    const { id: teamId } = await addTeam(store.db, organization);
    const between = await number();
    await acts.setExtraUsage(organization, { enabled: true, capNanos: 9 }, "cli:test");
    const { subjects } = await told.changes(since);
    expect(subjects?.toSorted()).toEqual([key, organization, teamId].toSorted());
    expect((await told.changes(between)).subjects).toEqual([organization]);
  });

  test("whose limits for models, or whose raise, an administrator sets is named", async () => {
    const id = await store.newOrganization();
    const whole = { subject: "organization", id, organizationId: id } as const;
    const acts = administration(store.db);
    const until = new Date(Date.now() + 3_600_000);
    // Of the limits for models only the second is of use here: summing what was used before the first is announced, too.
    for (const change of [
      { models: new Map([["acme/*", { ...noBudget, week: 9 }]]) },
      { models: new Map([["acme/*", { ...noBudget, week: 5 }]]) },
      { raises: [{ models: "", limits: { ...noBudget, week: 7 }, until }] },
    ]) {
      const since = await number();
      await acts.updateLimits(whole, { actor: "cli:test" }, () => change);
      expect((await told.changes(since)).subjects).toEqual([id]);
    }
  });

  test("what was used before a first limit is summed, and that is a change of its own", async () => {
    const key = newKey();
    const command = { ...admitOf(organization), keyId: key };
    await book.run([command]);
    await book.run([settleOf(command, 40)]);
    expect(await set(key, { session: 50 })).toBe(true);
    const since = await number();
    await sumEarlier(store.db, bare(key, "key_"));
    expect((await told.changes(since)).subjects).toEqual([key]);
    expect((await book.budgets(organization, key))[0]?.windows.session).toMatchObject({ used: 40, limit: 50 });
  });

  test("a grant says in which team the key is, limited or not, also when it is asked again", async () => {
    const { id: teamId } = await addTeam(store.db, organization);
    const [inside, outside] = [newKey(), newKey()];
    await set(inside, {}, teamId);
    for (const [keyId, expected] of [
      [inside, teamId],
      [outside, undefined],
    ] as const) {
      const admit = { ...admitOf(organization), keyId };
      for (let time = 0; time < 2; time++) {
        const [answer] = (await book.run([admit])) as AdmitAnswer[];
        expect(answer).toMatchObject({ answer: "granted" });
        expect("teamId" in answer! ? answer.teamId : undefined).toBe(expected);
      }
    }
  });

  test("a change that is not committed yet is not passed over: later ones wait for it", async () => {
    if (name === "pglite") return;
    const [first, second] = [newKey(), newKey()];
    const since = await number();
    const elsewhere = await store.newOrganization();
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const slow = store.db.transaction(async (tx) => {
      const [id, owner] = [bare(first, "key_"), bare(organization, "org_")];
      await setSubject(tx, { id, organization: owner, team: null, budget: { ...noBudget, session: 5 } });
      begun.resolve();
      await held.promise;
    });
    await begun.promise;
    const quick = setBudget(store.db, elsewhere, second, {});
    await lockAwaited(store.db);
    expect(await told.changes(since)).toMatchObject({ number: since, subjects: [] });
    held.resolve();
    await Promise.all([slow, quick]);
    expect((await told.changes(since)).subjects?.toSorted()).toEqual([first, second].toSorted());
  });

  test("more changes than can be named, and numbers that went back, may be anybody's", async () => {
    const since = await number();
    await store.db.query("select usage_limits_changed(array[gen_random_uuid()]) from generate_series(1, 1001)");
    expect((await told.changes(since)).subjects).toBeNull();
    expect((await told.changes(since + 5_000)).subjects).toBeNull();
  });

  test("every node is informed with the commit", async () => {
    let heard = 0;
    const stop = await told.listen(() => {
      heard += 1;
    });
    heard = 0;
    await set(newKey(), { week: 5 });
    await until(() => heard > 0, 10_000, "the message");
    await stop();
  });
});
