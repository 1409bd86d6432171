// An organization's own limits: they replace its plan's, limit by limit, higher or lower, wherever the ledger decides.
import { beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { noBudget } from "../../../src/admin/store/budget.ts";
import type { Budget } from "../../../src/core/store/budget.ts";
import { uuidOf } from "../../../src/core/store/ids.ts";
import type { AdmitAnswer, WindowKind } from "../../../src/core/store/ledger.ts";
import { not_limited } from "../../../src/core/store/rates.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { standings } from "../../../src/stores/postgres/standing.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { setLimits, setRaise } from "../../harness/limits.ts";
import { admitOf, checkpointOf, growOf, ledgerForTests, newHex, noon, settleOf, unlimited } from "./ledger-stores.ts";
import { addKey } from "./made.ts";
import { newSecret } from "./new-key.ts";

setDefaultTimeout(60_000);
const plan = { ...unlimited, session: 2_000, week: 9_000, concurrentRequests: 3 };

describe.each(databaseKinds(import.meta.path))("an organization's own limits on %s", (name) => {
  const { store, book, run, admit } = ledgerForTests(name);
  let organization: string;
  /** A request that needs a thousand nanos of money, under the plan that the node knows. */
  const asked = (of = organization) => ({ ...admitOf(of, { limits: plan }), keyId: `key_${newHex()}` });
  const set = (own: Partial<Budget>) =>
    setLimits(store.db, { subject: "organization", id: organization, organizationId: organization }, { own });
  const fullBy = (window: WindowKind) => ({
    answer: "full",
    limits: [{ limitedBy: "organization", window, resetAt: expect.any(Date) }],
  });

  beforeEach(async () => {
    await store.setClock(noon);
    organization = await store.newOrganization();
  });

  test("that are lifted leave the most that a window takes: beyond it, requests are refused, and no batch fails", async () => {
    await set({ session: not_limited, week: not_limited, month: not_limited });
    await run(asked());
    const use = (nanos: string) =>
      store.db.query("update usage_now set used[3] = $2 where subject_id = $1", [uuidOf(organization, "org_")!, nanos]);
    await use("9007199254740491");
    const elsewhere = await store.newOrganization();
    const answers = (await book.run([asked(), asked(elsewhere)])) as AdmitAnswer[];
    expect(answers.map(({ answer }) => answer)).toEqual(["exhausted", "granted"]);
    await use("0");
  });

  test("are admitted, grown, settled and shown by, and another organization on the plan is as before", async () => {
    const elsewhere = await store.newOrganization();
    await set({ session: 4_000, week: 3_000, concurrentRequests: 9 });
    const commands = [asked(), asked(elsewhere), asked(), asked(elsewhere), asked(), asked(elsewhere), asked()];
    const answers = (await book.run(commands)) as AdmitAnswer[];
    expect(answers.map(({ answer }) => answer as string)).toEqual([
      ...["granted", "granted", "granted", "granted", "granted", "reserved", "reserved"],
    ]);
    expect(answers[6]).toMatchObject({
      ...{ kinds: ["week"], windows: { session: { limit: 4_000 }, week: { limit: 3_000, held: 3_000 } } },
    });
    expect(answers[5]).toMatchObject({ kinds: ["session"], windows: { session: { limit: 2_000 } } });
    expect(await book.reading(organization, plan)).toMatchObject({
      ...{ concurrentRequests: 9, running: 3 },
      windows: { session: { limit: 4_000 }, week: { limit: 3_000 }, month: { limit: null } },
    });
    expect((await standings(store.db).standings([organization])).get(organization)).toMatchObject({
      ...{ concurrentRequests: 9, windows: { session: { limit: 4_000 }, week: { limit: 3_000 } } },
    });
    expect(await run(growOf(commands[0]!, 1_500))).toMatchObject(fullBy("week"));
    // A window is never charged past the limit in force.
    expect(await run(settleOf(commands[0]!, 5_000))).toMatchObject({ charged: 1_000 });
    await set({ week: 6_000 });
    expect(await run(growOf(commands[2]!, 1_500))).toMatchObject(fullBy("session"));
    await set({ session: not_limited, week: 6_000 });
    expect(await run(growOf(commands[2]!, 1_500))).toEqual({ answer: "granted", nanos: 1_500 });
    expect(await run(settleOf(commands[2]!, 1_500))).toMatchObject({ charged: 1_500 });
    await set({});
    expect(await admit(asked())).toMatchObject({ answer: "exhausted", windows: { session: { limit: 2_000 } } });
  });

  test("that say none take the plan's limit away, and what they say nothing of is the plan's", async () => {
    await set({ session: not_limited, concurrentRequests: not_limited });
    const all = Array.from({ length: 10 }, () => asked());
    expect((await book.run(all)).map(({ answer }) => answer as string)).toEqual([
      ...Array(9).fill("granted"),
      "reserved",
    ]);
    expect((await book.windows(organization, plan)).session.limit).toBeNull();
    await run(settleOf(all[0]!, 0));
    expect(await admit(asked())).toMatchObject({ answer: "granted", concurrentRequests: null });
  });

  test("are what a raise is above", async () => {
    await set({ session: 1_000, concurrentRequests: 1 });
    expect(await admit(asked())).toMatchObject({ answer: "granted", concurrentRequests: 1 });
    expect(await admit(asked())).toMatchObject({ answer: "reserved" });
    const until = new Date(noon.getTime() + 3_600_000);
    const raise = { limits: { ...noBudget, session: 1_500, concurrentRequests: 2 }, until };
    await setRaise(store.db, { id: organization, organizationId: organization }, raise);
    expect((await book.windows(organization, plan)).session.limit).toBe(1_500);
    await setRaise(store.db, { id: organization, organizationId: organization }, null);
    await set({ concurrentRequests: 1 });
    expect(await admit(asked())).toMatchObject({ answer: "concurrency", concurrentRequests: 1 });
    expect(await run(settleOf(asked(), 0))).toMatchObject({ charged: 0 });
  });

  test("settle what a node left behind", async () => {
    await set({ session: 300 });
    const command = { ...asked(), lease_ms: 1_000, inputNanos: 0, outputTokens: 30, outputTokens_min: 1 };
    expect(await admit(command)).toMatchObject({ answer: "granted", nanos: 300 });
    await run(checkpointOf(command, { outputTokens: 90 }, { lease_ms: 1_000 }));
    await store.setClock(new Date(noon.getTime() + 60_000));
    expect((await book.recover(10)).settled).toBeGreaterThanOrEqual(1);
    expect(await book.receipt(organization, command.requestId)).toMatchObject({
      nanos: { charged: 300, uncharged: 600 },
    });
  });

  test("of a minute reach the directory, and so do those that say none", async () => {
    const secret = newSecret();
    await addKey(store.db, organization, { secret });
    const own = async () => (await directory(store.db).credential(secret.hash))!.overPlan?.own;
    expect(await own()).toEqual({ requestsPerMinute: null, tokensPerMinute: null });
    await set({ requestsPerMinute: 7, tokensPerMinute: not_limited });
    expect(await own()).toEqual({ requestsPerMinute: 7, tokensPerMinute: 0 });
  });
});
