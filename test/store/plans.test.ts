/** The plans in force: whose file wins, on both databases. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { plansInForce } from "../../src/admission/plans-in-force.ts";
import { ledger } from "../../src/postgres/ledger.ts";
import { plans } from "../../src/postgres/plans.ts";
import { noLimits, type Plan, type PlanStore } from "../../src/store/plan.ts";
import { until } from "../harness/until.ts";
import { admitOf, type Store, stores } from "./ledger-stores.ts";

setDefaultTimeout(60_000);

const named = (name: string, session: number): Plan => ({ ...noLimits, name, session });
const hour_ms = 3_600_000;

describe.each(Object.keys(stores) as (keyof typeof stores)[])("%s", (kind) => {
  let store: Store;
  let published: PlanStore;
  let another: PlanStore;
  beforeAll(async () => {
    store = await stores[kind]();
    published = plans(store.db);
    another = plans(await store.another());
  });
  afterAll(() => store.close());

  const versions = async () =>
    Object.fromEntries(
      (await store.db.query<{ name: string; at: Date }>("select name, changed_at as at from plan")).map(
        ({ name, at }) => [name, at.getTime()],
      ),
    );

  test("the file that was changed last wins, whoever comes last; the same plans are no new version", async () => {
    expect(await published.publish([named("a", 1), named("b", 1)], null)).toBe("published");
    expect(await another.publish([named("a", 2), named("b", 1)], 2 * hour_ms)).toBe("published");
    expect(await published.publish([named("a", 3), named("b", 1)], 3 * hour_ms)).toBe("older");
    expect(await published.publish([named("a", 3), named("b", 1)], null)).toBe("older");
    const before = await versions();
    expect(await published.publish([named("b", 1), named("a", 2)], hour_ms)).toBe("same");
    expect(await versions()).toEqual(before);
    // And yet it was the newer file.
    expect(await another.publish([named("a", 4), named("b", 1)], 2 * hour_ms)).toBe("older");
    expect(await published.inForce()).toEqual(expect.arrayContaining([named("a", 2), named("b", 1)]));
    expect(await another.publish([named("a", 5), named("c", 1)], 0)).toBe("published");
    const after = await versions();
    expect(Object.keys(after).sort()).toEqual(["a", "c"]);
    expect(after.a).toBeGreaterThan(before.a!);
  });

  test("a lowered limit takes back what is held beyond the least, and bounds recovery", async () => {
    const organization = await store.newOrganization();
    const book = ledger(store.db, { recovery: "hold" });
    const limits = { session: 1_000_000, week: null, month: null, concurrentRequests: null };
    const admit = { ...admitOf(organization, { limits, inputUnits: 0, outputTokens: 1_000 }), lease_ms: 60_000 };
    const [granted] = await book.run([admit]);
    const units = (granted as { units: number }).units;
    const { requestId, organizationId } = admit;
    const grow = (session: number, unitsTotal_min: number) =>
      book.run([
        { verb: "grow", requestId, organizationId, limits: { ...limits, session }, unitsTotal: units, unitsTotal_min },
      ]);
    expect(await grow(1_000_000, 10)).toEqual([{ answer: "granted", units }]);
    expect(await grow(units - 5, 10)).toEqual([{ answer: "granted", units: units - 5 }]);
    expect(await grow(5, 10)).toEqual([{ answer: "granted", units: 10 }]);
    expect(await grow(5, 11)).toEqual([{ answer: "full" }]);

    await published.publish([named("test", 7)], 0);
    await store.setClock(new Date(Date.now() + hour_ms));
    expect((await book.recover(10)).settled).toBe(1);
    expect((await book.receipt(organization, requestId))?.units).toEqual({ held: 10, charged: 7, uncharged: 3 });
    await store.setClock(null);
    await book.close();
  });

  test("every node reads them when they change, and what did not change stays the same object", async () => {
    await published.publish([named("a", 1), named("b", 1)], 0);
    const node = await plansInForce({ store: another, failed() {} });
    const before = node.current();
    await published.publish([named("a", 2), named("b", 1)], 0);
    await until(() => node.current().get("a")?.session === 2, 10_000, "the news");
    expect(node.current().get("b")).toBe(before.get("b")!);
    await node.stop();
  });
});
