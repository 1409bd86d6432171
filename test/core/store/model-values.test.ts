// A limit for a pattern of models, set for any subject, takes effect at the ledger and in the directory.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { noBudget } from "../../../src/admin/store/budget.ts";
import type { LimitSubject } from "../../../src/admin/store/limits.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import type { AdmitAnswer } from "../../../src/core/store/ledger.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { admitOf, ledgerForTests, unlimited } from "./ledger-stores.ts";
import { house, whose } from "./model-limits.ts";

setDefaultTimeout(60_000);
const model = "acme/large";

describe.each(databaseKinds(import.meta.path))("values for models on %s", (name) => {
  const { store, book } = ledgerForTests(name, { isBalanced: false });
  for (const one of whose)
    test(`of the ${one} count, are raised, and are taken away`, async () => {
      const { organization, key, ids } = await house(store);
      const sql = "select person_id as id from api_key where id = $1";
      const [owner] = await store.db.query<{ id: string }>(sql, [ids.key]);
      await store.db.query("insert into team (id, organization_id, name) values ($1, $2, 'one')", [
        ids.team,
        ids.organization,
      ]);
      const named = { organization, key, team: idOf(ids.team, "team_"), person: idOf(owner!.id, "per_") };
      const subject: LimitSubject = { subject: one, id: named[one], organizationId: organization };
      const set = (change: object) =>
        administration(store.db).updateLimits(subject, { actor: "cli:test" }, () => change);
      const asks = async (asked: string) => {
        const command = { ...admitOf(organization, { limits: unlimited }), keyId: key, model: asked };
        return ((await book.run([command])) as AdmitAnswer[])[0]!.answer;
      };
      const limits = { ...noBudget, week: 1_500 };
      expect(await asks(model)).toBe("granted");
      await set({ models: new Map([["acme/*", { ...limits, requestsPerMinute: 7 }]]) });
      expect([await asks(model), await asks("other/one")] as string[]).toEqual(["reserved", "granted"]);
      const rates = "select requests_per_minute as rate from usage_subject where models = 'acme/*' and parent_id = $1";
      expect(await store.db.query<object>(rates, [ids[one]])).toMatchObject([{ rate: 7 }]);
      const until = new Date(Date.now() + 3 * 86_400_000);
      await set({ raises: [{ models: "acme/*", limits: { ...noBudget, week: 2_500 }, until }] });
      expect([await asks(model), await asks(model)] as string[]).toEqual(["granted", "reserved"]);
      await set({ models: new Map(), raises: [] });
      expect(await asks(model)).toBe("granted");
    });
});
