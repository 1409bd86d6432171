// The list of requests, on both kinds of database: random loads of several organizations, with requests that run, that
// ended and that were refused; and pages of any size, which read few rows at a time (docs/operating.md, Listing requests).
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import {
  type ListedRequest,
  listedOutcomes,
  type RequestList,
  type RequestQuery,
} from "../../../src/admin/store/request-list.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import { refusedRequests } from "../../../src/stores/postgres/refused.ts";
import { requestList } from "../../../src/stores/postgres/request-list.ts";
import { common, joinedSpans, type Span, uuidAt } from "../../../src/stores/postgres/request-spans.ts";
import { databaseKinds, times } from "../../harness/depth.ts";
import { emptyBooks } from "./books.ts";
import { admitOf, ledgerForTests, settleOf } from "./ledger-stores.ts";

setDefaultTimeout(120_000);

const hour_ms = 3_600_000;
const keys = [1, 2, 3].map((one) => `key_0000000000007000800000000000000${one}`);
const models = ["acme/writer-1", "acme/painter-1"];
const upstreams = ["main", "spare"];

/** The operation with which `served` serves a request. */
const operationOf = ({ outcome }: { outcome: string }) => (outcome === "refused" ? "messages" : "chat.completions");

const request = fc.record({
  organization: fc.nat(2),
  key: fc.nat(2),
  model: fc.nat(1),
  upstream: fc.nat(1),
  outcome: fc.constantFrom(...listedOutcomes),
  /** How long before the end of the load the request arrived. */
  ago_ms: fc.nat(60 * hour_ms),
  /** How far the clock of the request's node is off. */
  off_ms: fc.integer({ min: -600_000, max: 600_000 }),
});
type Asked = typeof request extends fc.Arbitrary<infer T> ? T : never;

const filter = fc.record(
  {
    organization: fc.nat(2),
    key: fc.nat(2),
    model: fc.nat(1),
    outcome: fc.constantFrom(...listedOutcomes),
    operation: fc.constantFrom("chat.completions", "messages"),
    upstream: fc.nat(1),
    from_ms: fc.nat(60 * hour_ms),
    to_ms: fc.nat(60 * hour_ms),
  },
  { requiredKeys: [] },
);
type Filter = typeof filter extends fc.Arbitrary<infer T> ? T : never;

const runs = { postgres: times(4, 60), pglite: times(1, 30) };

describe.each(databaseKinds(import.meta.path))("a list of requests on %s", (name) => {
  const { store, book } = ledgerForTests(name, { isBalanced: false });
  let list: RequestList;
  let hasty: RequestList;
  const end_ms = Date.now();
  beforeAll(async () => {
    // A list that reads few rows at a time, with a minute for each page.
    list = requestList(store.db, { scanned_max: 7, page_ms: 60_000 });
    // A list that reads few rows, and whose time for a page is over at once: it asks each source once for a page.
    hasty = requestList(store.db, { scanned_max: 7, page_ms: -1 });
    await store.db.query("select usage_partition($1::uuid)", [uuidAt(end_ms - 62 * hour_ms)]);
  });

  interface Known extends Asked {
    id: string;
    organizationId: string;
  }

  async function emptied(): Promise<void> {
    await emptyBooks(store);
    await store.db.exec("delete from usage_refusal");
  }

  async function load(asked: readonly Asked[], owners: readonly string[], isRolledUp: boolean): Promise<Known[]> {
    await emptied();
    const known: Known[] = [];
    for (const one of asked.toSorted((a, b) => b.ago_ms - a.ago_ms)) {
      const at_ms = end_ms - one.ago_ms;
      const id = idOf(Bun.randomUUIDv7(undefined, at_ms + one.off_ms), "req_");
      await store.setClock(new Date(at_ms));
      const organizationId = owners[one.organization]!;
      await served({ ...one, id, organizationId });
      known.push({ ...one, id, organizationId });
    }
    if (isRolledUp) await store.db.query("select usage_audit_read(1000)");
    return known;
  }

  async function served({ id, organizationId, key, model, upstream, outcome }: Known): Promise<void> {
    const facts = { requestId: id, keyId: keys[key]!, model: models[model]! };
    if (outcome === "refused") {
      const { keyId } = facts;
      const refusal = {
        organizationId,
        stream: true,
        operation: "messages",
        errorCode: "usage_limit_reached",
        message: "",
      } as const;
      return refusedRequests(store.db).keep([{ ...refusal, ...facts, keyId, age_ms: 0 }]);
    }
    const admit = admitOf(organizationId, { ...facts, lease_ms: 100 * hour_ms });
    await book.run([admit]);
    if (outcome === "running") return;
    const route = { upstream: upstreams[upstream]!, attempts: 1, firstPart_ms: 12 };
    await book.run([settleOf(admit, 100, { outcome, route })]);
  }

  async function all(
    query: Omit<RequestQuery, "limit">,
    limit: number,
    read: RequestList = list,
  ): Promise<ListedRequest[]> {
    const items: ListedRequest[] = [];
    let before: string | undefined;
    do {
      const page: Awaited<ReturnType<RequestList["listRequests"]>> = await read.listRequests({
        ...query,
        before,
        limit,
      });
      expect(page.items.length).toBeLessThanOrEqual(limit);
      items.push(...page.items);
      before = page.next ?? undefined;
    } while (before !== undefined);
    return items;
  }

  const queryOf = (owners: readonly string[], of: Filter): Omit<RequestQuery, "limit"> => ({
    organizationId: of.organization === undefined ? undefined : owners[of.organization],
    keyId: of.key === undefined ? undefined : keys[of.key],
    model: of.model === undefined ? undefined : models[of.model],
    operation: of.operation as RequestQuery["operation"],
    outcome: of.outcome,
    upstream: of.upstream === undefined ? undefined : upstreams[of.upstream],
    from: of.from_ms === undefined ? undefined : new Date(end_ms - of.from_ms),
    to: of.to_ms === undefined ? undefined : new Date(end_ms - of.to_ms),
  });

  function matches(one: Known, query: Omit<RequestQuery, "limit">): boolean {
    const hasEnded = one.outcome !== "running" && one.outcome !== "refused";
    const at_ms = end_ms - one.ago_ms;
    return (
      (query.organizationId ?? one.organizationId) === one.organizationId &&
      (query.keyId ?? keys[one.key]) === keys[one.key] &&
      (query.model ?? models[one.model]) === models[one.model] &&
      (query.outcome ?? one.outcome) === one.outcome &&
      (query.upstream === undefined || (hasEnded && query.upstream === upstreams[one.upstream])) &&
      (query.operation ?? operationOf(one)) === operationOf(one) &&
      (query.from === undefined || at_ms >= query.from.getTime()) &&
      (query.to === undefined || at_ms < query.to.getTime())
    );
  }

  test("has every request that matches once, the newest first, whatever the pages and the filter", async () => {
    const loads = fc.array(request, { minLength: 1, maxLength: 40 });
    const filters = fc.array(fc.tuple(filter, fc.integer({ min: 1, max: 9 })), { minLength: 1, maxLength: 8 });
    const property = fc.asyncProperty(loads, filters, fc.boolean(), async (asked, questions, isRolledUp) => {
      const owners = await Promise.all([0, 1, 2].map(() => store.newOrganization()));
      const known = await load(asked, owners, isRolledUp);
      for (const [of, limit] of questions) {
        const query = queryOf(owners, of);
        const right = known.filter((one) => matches(one, query)).map(({ id }) => id);
        for (const read of [list, hasty]) {
          const found = await all(query, limit, read);
          expect(found.map(({ requestId }) => requestId)).toEqual(right.toSorted().toReversed());
        }
      }
    });
    await fc.assert(property, { numRuns: runs[name] });
  });

  test("has all of an organization with a request in every fourth hour, whose ids are of the hour before", async () => {
    const owners = [await store.newOrganization()];
    const hours = Array.from({ length: 14 }, (_, n) => 4 * (n + 1));
    const lastHour_ms = Math.floor(end_ms / hour_ms) * hour_ms;
    const asked = hours.flatMap((hour) =>
      (["completed", "refused"] as const).map((outcome, at) => ({
        ...{ organization: 0, key: 0, model: 0, upstream: 0, outcome },
        ago_ms: end_ms - lastHour_ms + hour * hour_ms - 60_000 - at,
        off_ms: -300_000,
      })),
    );
    const known = await load(asked, owners, true);
    for (const [outcome, limit] of [
      [undefined, 3],
      ["completed", 9],
    ] as const) {
      const right = known.filter((one) => (outcome ?? one.outcome) === one.outcome).map(({ id }) => id);
      for (const read of [list, hasty]) {
        const found = await all({ organizationId: owners[0], outcome }, limit, read);
        expect(found.map(({ requestId }) => requestId)).toEqual(right.toSorted().toReversed());
      }
    }
  });

  test("has a request once that ends while the list is read", async () => {
    const owner = await store.newOrganization();
    await emptied();
    await store.setClock(null);
    const admits = Array.from({ length: 12 }, () => admitOf(owner));
    await book.run(admits);
    const seen: string[] = [];
    let before: string | undefined;
    for (const admit of admits) {
      const page = await list.listRequests({ organizationId: owner, before, limit: 1 });
      seen.push(...page.items.map(({ requestId }) => requestId));
      before = page.next ?? before;
      await book.run([settleOf(admit, 50)]);
    }
    expect(seen).toEqual(
      admits
        .map(({ requestId }) => requestId)
        .toSorted()
        .toReversed(),
    );
  });

  test("tells what each of them is", async () => {
    const owner = await store.newOrganization();
    await emptied();
    const [running, ended] = [admitOf(owner), admitOf(owner)];
    await book.run([running, ended]);
    await book.run([settleOf(ended, 100, { outcome: "failed", errorCode: "internal_error" })]);
    const items = await all({ organizationId: owner }, 50);
    const of = (id: string) => items.find(({ requestId }) => requestId === id);
    expect(of(running.requestId)).toMatchObject({ outcome: "running", held: 1000, charged: 0, endedAt: null });
    expect(of(ended.requestId)).toMatchObject({
      outcome: "failed",
      errorCode: "internal_error",
      charged: 100,
      outputTokens: 10,
      upstream: "main",
      attempts: 1,
      firstPart_ms: 12,
    });
  });
});

test("asks for no more than the time of a page is enough for, however slow the database is", async () => {
  for (const row_ms of [0.001, 0.02, 0.05, 0.2]) {
    let now_ms = 0;
    let top = Number.MAX_SAFE_INTEGER;
    // A database in which nothing matches, and there is always more to read.
    const db = {
      async query(_text: string, values: readonly unknown[] = []) {
        const rows = Number(values.at(-1));
        now_ms += rows * row_ms;
        top -= rows;
        return [{ request_id: null, read_to: uuidAt(top / 1e6) }] as never[];
      },
    };
    const page = requestList(db, { scanned_max: 10_000, page_ms: 100 }, () => now_ms);
    const { items, next } = await page.listRequests({ outcome: "failed", limit: 100 });
    expect([items, typeof next]).toEqual([[], "string"]);
    expect(now_ms).toBeLessThanOrEqual(Math.max(100 + row_ms, 404 * row_ms));
    expect(now_ms).toBeGreaterThan(75);
  }
});

test("spans are joined where they touch, and cut to what is asked", () => {
  const hour = (from: number, to: number): Span => ({ since: uuidAt(from), until: uuidAt(to) });
  expect(joinedSpans([hour(50, 80), hour(30, 60), hour(5, 20)])).toEqual([hour(30, 80), hour(5, 20)]);
  expect(common(hour(5, 20), hour(10, 30))).toEqual(hour(10, 20));
  expect(common(hour(5, 20), { since: uuidAt(7), until: null })).toEqual(hour(7, 20));
  expect(common(hour(5, 10), hour(10, 30))).toBeNull();
});
