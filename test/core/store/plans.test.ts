/** The plans in force: which node's file wins, on both databases. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { PlanStore } from "../../../src/admin/store/plan.ts";
import { limitsInForce } from "../../../src/core/admission/limits-in-force.ts";
import { noLimits, type Plan } from "../../../src/core/store/plan.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { limits } from "../../../src/stores/postgres/limits.ts";
import { plans } from "../../../src/stores/postgres/plans.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { dollars } from "../../harness/money.ts";
import { until } from "../../harness/until.ts";
import { admitOf, type Store, stores, unlimited } from "./ledger-stores.ts";

setDefaultTimeout(60_000);

const written = (nanos: number) => dollars(nanos).amount;
const named = (name: string, session: number): Plan => ({ ...noLimits, name, session });
const hour_ms = 3_600_000;

describe.each(databaseKinds(import.meta.path))("%s", (kind) => {
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

  test("the file that was changed last wins, in whatever order nodes come; the same plans are no new version", async () => {
    expect(await published.publish([named("a", 1), named("b", 1)], null)).toBe("published");
    expect(await another.publish([named("a", 2), named("b", 1)], 2 * hour_ms)).toBe("published");
    expect(await published.publish([named("a", 3), named("b", 1)], 3 * hour_ms)).toBe("older");
    expect(await published.publish([named("a", 3), named("b", 1)], null)).toBe("older");
    const before = await versions();
    expect(await published.publish([named("b", 1), named("a", 2)], hour_ms)).toBe("same");
    expect(await versions()).toEqual(before);
    // The same plans came from a newer file, so an older file still loses.
    expect(await another.publish([named("a", 4), named("b", 1)], 2 * hour_ms)).toBe("older");
    expect(await published.inForce()).toEqual(expect.arrayContaining([named("a", 2), named("b", 1)]));
    expect(await another.publish([named("a", 5), named("c", 1)], 0)).toBe("published");
    const after = await versions();
    expect(Object.keys(after).sort()).toEqual(["a", "c"]);
    expect(after.a).toBeGreaterThan(before.a!);
  });

  test("a lowered limit bounds what is recovered under it", async () => {
    const organization = await store.newOrganization();
    const book = ledger(store.db, { recovery: "hold" });
    const limits = { ...unlimited, session: 1_000_000 };
    const admit = admitOf(organization, { limits, inputNanos: 0, outputTokens: 1_000 });
    const [granted] = await book.run([admit]);
    const held = (granted as { nanos: number }).nanos;
    await published.publish([named("test", 7)], 0);
    await store.setClock(new Date(Date.now() + hour_ms));
    expect((await book.recover(10)).settled).toBe(1);
    const receipt = await book.receipt(organization, admit.requestId);
    expect(receipt?.nanos).toEqual({ held, charged: 7, uncharged: held - 7 });
    await store.setClock(null);
    await book.close();
  });

  test("every node reads them when they change, and what did not change stays the same object", async () => {
    await published.publish([named("a", 1), named("b", 1)], 0);
    const node = await limitsInForce({ store: limits(await store.another()), failed() {} });
    const before = node.plans();
    await published.publish([named("a", 2), named("b", 1)], 0);
    await until(() => node.plans().get("a")?.session === 2, 10_000, "the news");
    expect(node.plans().get("b")).toBe(before.get("b")!);
    await node.stop();
  });

  test("a plan made at run time stands beside those of the file, survives its publication, and is one place's only", async () => {
    const acts = administration(store.db);
    await published.publish([named("a", 1)], 0);
    expect(await acts.createPlan(named("a", 9), "cli:test")).toEqual({ standsIn: "file" });
    const gold = await acts.createPlan(named("gold", 9), "cli:test");
    expect(gold).toMatchObject({ name: "gold", source: "management", version: 1, session: 9 });
    expect(await acts.createPlan(named("gold", 8), "cli:test")).toEqual({ standsIn: "management" });
    // Neither another file nor an older one removes the plan.
    expect(await another.publish([named("b", 1)], 0)).toBe("published");
    expect(await another.publish([named("a", 1)], 3 * hour_ms)).toBe("older");
    expect((await published.inForce()).map(({ name }) => name).sort()).toEqual(["b", "gold"]);
    // A file that names the plan changes nothing, whatever its date. Nor does its date make the files that come later
    // count as older.
    expect(await another.taken(["b", "gold"])).toEqual(["gold"]);
    expect(await another.publish([named("c", 1), named("gold", 1)], -hour_ms)).toEqual({ taken: ["gold"] });
    expect(await published.publish([named("c", 1), named("gold", 1)], hour_ms)).toBe("older");
    expect(await published.publish([named("c", 1)], 0)).toBe("published");
    expect(await acts.updatePlan("c", { session: 2 }, "cli:test", null)).toBe("of_file");
    expect(await acts.removePlan("c", "cli:test", null)).toBe("of_file");
    expect(await acts.removePlan("gold", "cli:test", null)).toMatchObject({ name: "gold" });
    expect(await published.publish([named("c", 1), named("gold", 1)], 0)).toBe("published");
    await published.publish([named("c", 1)], 0);
  });

  test("of two changes at once neither is lost, and one that was not read is refused with what it would overwrite", async () => {
    const [acts, others] = [administration(store.db), administration(await store.another())];
    await acts.createPlan(named("gold", 9), "cli:test");
    await Promise.all([
      acts.updatePlan("gold", { week: 5 }, "cli:one", null),
      others.updatePlan("gold", { month: 7 }, "cli:two", null),
    ]);
    const now = (await acts.listPlans()).find(({ name }) => name === "gold")!;
    expect(now).toMatchObject({ session: 9, week: 5, month: 7, version: 3 });
    expect(await others.updatePlan("gold", { week: 6 }, "cli:two", 2)).toEqual({ stale: now });
    expect(await others.removePlan("gold", "cli:two", 2)).toEqual({ stale: now });
    expect(await acts.updatePlan("gold", { week: 5 }, "cli:one", 3)).toEqual(now);
    expect(await acts.removePlan("gold", "cli:one", 3)).toEqual(now);
  });

  test("a plan in use is not removed, also when an organization gets it at the same moment", async () => {
    const served = { isServed: true };
    const [acts, others] = [administration(store.db, served), administration(await store.another(), served)];
    await published.publish([named("a", 1)], 0);
    const newId = () => `org_${Bun.randomUUIDv7().replaceAll("-", "")}`;
    const id = newId();
    const released = async (slugOrId: string) => {
      const found = await acts.findOrganization(slugOrId);
      if (found) await acts.setOrganizationPlan(found.id, null, "cli:test");
    };
    await acts.createOrganization({ id, slug: `u${id.slice(-20)}`, name: "U", plan: null, actor: "cli:test" });
    for (let round = 0; round < 10; round++) {
      await acts.createPlan(named("gold", 9), "cli:test");
      const [removed, moved] = await Promise.all([
        acts.removePlan("gold", "cli:one", null),
        others.setOrganizationPlan(id, "gold", "cli:two"),
      ]);
      const slug = `made-${id.slice(-12)}-${round}`;
      const made = await others.createOrganization({
        ...{ id: newId(), slug, name: "M", plan: "gold" },
        actor: "cli:two",
      });
      const isThere = (await acts.listPlans()).some(({ name }) => name === "gold");
      const isUsed = (await acts.findOrganization(id))!.plan === "gold";
      expect([moved === "no_plan", isUsed, made === "no_plan"]).toEqual([!isThere, isThere, !isThere]);
      expect(Object.keys(Object(removed)).includes("organizations")).toBe(isThere);
      for (const one of [id, slug]) await released(one);
      await acts.removePlan("gold", "cli:test", null);
    }
  });

  test("the history says what was in force when, of plans of the file, too", async () => {
    const acts = administration(store.db);
    await published.publish([named("told", 1)], 0);
    await published.publish([named("told", 2)], 0);
    await published.publish([named("b", 1)], 0);
    await acts.createPlan(named("told", 3), "operator:ann");
    const entries = await acts.listAudit({ plan: "told", limit: 10 });
    expect(entries.map(({ actor, action, details }) => [actor, action, sessionsOf(details)])).toEqual([
      ["operator:ann", "plan.create", [written(3), null]],
      ["service", "plan.remove", [null, written(2)]],
      ["service", "plan.update", [written(2), written(1)]],
      ["service", "plan.create", [written(1), null]],
    ]);
    await acts.removePlan("told", "operator:ann", null);
  });
});

/** The session limits after and before the change. */
function sessionsOf(details: Record<string, unknown>) {
  const { limits, before } = details as Record<string, { session: string } | null>;
  return [limits?.session ?? null, before?.session ?? null];
}
