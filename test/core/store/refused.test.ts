// The store of refused requests, on both kinds of database.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { LimitMet } from "../../../src/core/inference/fault.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import type { NewRefused, RefusedRequests } from "../../../src/core/store/refused.ts";
import { refusedRequests } from "../../../src/stores/postgres/refused.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { databaseForTests, setClock } from "../../stores/postgres/databases.ts";

setDefaultTimeout(60_000);

const newId = (prefix: "org_" | "key_" | "req_") => idOf(Bun.randomUUIDv7(), prefix);
const refusedBy = (organizationId: string, change: Partial<NewRefused> = {}): NewRefused => ({
  requestId: newId("req_"),
  organizationId,
  keyId: newId("key_"),
  operation: "messages",
  model: "acme/writer-1",
  stream: true,
  errorCode: "usage_limit_reached",
  message: "The team research has used its $10.00 for this week.",
  age_ms: 0,
  ...change,
});

describe.each(databaseKinds(import.meta.path))("refused requests on %s", (kind) => {
  const db = databaseForTests(kind);
  let store: RefusedRequests;
  beforeAll(async () => {
    await setClock(db, new Date("2026-11-21T03:00:00.700Z"));
    store = refusedRequests(db);
  });

  const kept = async (requests: NewRefused[]) => {
    const found = await Promise.all(requests.map(({ requestId }) => store.find(requestId)));
    return found.filter((one) => one !== null);
  };

  test("one is found as it was, at the store's time; what nobody knows is null", async () => {
    const limit: LimitMet = {
      limitedBy: "team",
      models: "acme/*",
      name: "week",
      limit: 10_000_000_000,
      used: 9_999_999_999,
      held: 0,
      needed: 240_000,
      resetAt: new Date("2026-11-23T00:00:00Z"),
    };
    const full = refusedBy(newId("org_"), { age_ms: 200, limit });
    const bare = refusedBy(newId("org_"), { model: null, stream: null, errorCode: "invalid_json" });
    await store.keep([full, bare]);
    await store.keep([]);
    const { age_ms: _full, ...first } = full;
    const { age_ms: _bare, ...second } = bare;
    expect(await store.find(full.requestId)).toEqual({
      ...first,
      personId: null,
      refusedAt: new Date("2026-11-21T03:00:00.500Z"),
    });
    expect(await store.find(bare.requestId)).toEqual({
      ...second,
      personId: null,
      refusedAt: new Date("2026-11-21T03:00:00.700Z"),
    });
    expect(await store.find(newId("req_"))).toBeNull();
  });

  test("an organization has ten in a second, from all writers together; each second and each organization its own", async () => {
    const [one, other] = [newId("org_"), newId("org_")];
    const many = Array.from({ length: 25 }, () => refusedBy(one));
    await Promise.all([store.keep(many.slice(0, 8)), store.keep(many.slice(8, 16)), store.keep(many.slice(16))]);
    await store.keep(many.slice(0, 8));
    const count = (await kept(many)).length;
    expect(count).toBeWithin(8, 11);
    await store.keep(many);
    expect(await kept(many)).toHaveLength(10);
    const earlier = Array.from({ length: 12 }, () => refusedBy(one, { age_ms: 1_000 }));
    const others = [refusedBy(other)];
    await store.keep([...earlier, ...others]);
    expect(await kept(earlier)).toHaveLength(10);
    expect(await kept(others)).toHaveLength(1);
  });

  test("a refusal that is written again takes no place from a new one", async () => {
    const one = newId("org_");
    const many = Array.from({ length: 12 }, () => refusedBy(one)).sort((a, b) => (a.requestId < b.requestId ? -1 : 1));
    await store.keep(many.slice(0, 9));
    await store.keep(many);
    expect(await kept(many)).toHaveLength(10);
  });

  test("one is kept for 30 days and a little, and then forgotten", async () => {
    const idAt = (instant: string) => {
      const hex = Date.parse(instant).toString(16).padStart(12, "0");
      return `req_${hex}7${newId("req_").slice(17)}`;
    };
    const owner = newId("org_");
    const old = refusedBy(owner, { requestId: idAt("2026-10-21T02:59:00Z"), age_ms: 31 * 86_400_000 });
    const young = refusedBy(owner, { requestId: idAt("2026-10-22T03:00:00Z"), age_ms: 30 * 86_400_000 });
    await store.keep([old, young]);
    expect(await kept([old, young])).toHaveLength(2);
    expect(await store.forget()).toBe(false);
    expect((await kept([old, young])).map(({ requestId }) => requestId)).toEqual([young.requestId]);
  });
});
