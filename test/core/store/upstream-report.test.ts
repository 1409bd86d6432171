// The report of engines compared with the requests as they were served: their number, outcomes, times and attempts.
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { UpstreamMeasures, UpstreamQuery } from "../../../src/admin/store/upstream-report.ts";
import type { Settle } from "../../../src/core/store/ledger.ts";
import { adjust } from "../../../src/stores/postgres/ledger.ts";
import { upstreamReports } from "../../../src/stores/postgres/upstream-report.ts";
import { chanceOf } from "../../faults/chance.ts";
import { databaseKinds, seed, times } from "../../harness/depth.ts";
import { admitOf, ledgerForTests, settleOf } from "./ledger-stores.ts";

setDefaultTimeout(120_000);
const hour_ms = 3_600_000;
const start_ms = Date.UTC(2026, 10, 20, 4);
const models = ["acme/writer-1", "acme/painter-1"];
const upstreams = ["gpu-1", "gpu-2", null] as const;
const outcomes = ["completed", "completed", "failed", "cancelled"] as const;
const served = times(40, 300);

interface Served {
  organization: string;
  at_ms: number;
  model: string;
  outcome: (typeof outcomes)[number];
  code: string | null;
  duration_ms: number;
  route: Settle["route"];
}

describe.each(databaseKinds(import.meta.path))(`a report of engines, seed ${seed}, on %s`, (name) => {
  const { store, book } = ledgerForTests(name, { isBalanced: false });
  const chance = chanceOf(seed);
  const all: Served[] = [];
  let organizations: string[];
  beforeAll(async () => {
    const organization = await store.newOrganization();
    organizations = [organization, await store.newOrganization()];
    const times_ms = Array.from({ length: served }, () => start_ms + chance.below(6 * hour_ms)).toSorted();
    for (const at_ms of times_ms) await serve(chance.pick(organizations), at_ms);
    // An operator's entry and a request that still runs are in no report.
    await adjust(store.db, `req_${Bun.randomUUIDv7().replaceAll("-", "")}`, organization, "month", 5);
    await book.run([admitOf(organization, { lease_ms: 99 * hour_ms })]);
  });

  async function serve(organization: string, at_ms: number): Promise<void> {
    const outcome = chance.pick(outcomes);
    const upstream = chance.pick(upstreams);
    const tried = [
      ...Array.from({ length: chance.below(3) }, () => ({
        ...{ upstream: chance.pick(["gpu-1", "gpu-2"] as const), ms: chance.below(90) },
        outcome: chance.pick(["unreachable", "busy"] as const),
      })),
      { upstream: upstream ?? "", outcome: "answered", ms: 5 },
    ];
    const firstPart_ms = chance.below(4) === 0 ? null : chance.below(5000);
    const route = upstream && { upstream, attempts: tried.length, firstPart_ms, ...(tried.length > 1 && { tried }) };
    const code = outcome === "failed" ? chance.pick(["upstream_timeout", "upstream_unavailable"]) : null;
    const one = {
      organization,
      at_ms,
      model: chance.pick(models),
      outcome,
      code,
      duration_ms: chance.below(90_000),
      route,
    };
    await store.setClock(new Date(at_ms));
    const requestId = `req_${Bun.randomUUIDv7("hex", at_ms + chance.below(600_000) - 300_000).replaceAll("-", "")}`;
    const admit = admitOf(organization, { requestId, model: one.model, lease_ms: 99 * hour_ms });
    await book.run([admit]);
    await store.setClock(new Date(at_ms + one.duration_ms));
    await book.run([settleOf(admit, 5, { outcome, errorCode: code, route })]);
    all.push(one);
  }

  async function tells(query: UpstreamQuery): Promise<void> {
    const { at: _, ...report } = await upstreamReports(store.db).reportUpstreams(query);
    const spanned = all.filter(
      ({ organization, at_ms, model }) =>
        (query.organizationId === undefined || organization === query.organizationId) &&
        at_ms >= query.from.getTime() &&
        at_ms < query.to.getTime() &&
        (query.model === undefined || model === query.model),
    );
    const asked = spanned.filter(({ route }) => query.upstream === undefined || route?.upstream === query.upstream);
    const hours = Map.groupBy(asked, ({ at_ms }) => at_ms - (at_ms % hour_ms));
    const engines = Map.groupBy(asked, ({ route }) => route?.upstream ?? null);
    const attempts = spanned
      .flatMap(({ route }) => route?.tried?.slice(0, -1) ?? [])
      .filter(({ upstream }) => query.upstream === undefined || upstream === query.upstream);
    expect({ ...report, upstreams: sorted(report.upstreams) }).toEqual({
      total: measured(asked),
      hours: [...hours].map(([hour_ms, some]) => ({ startsAt: new Date(hour_ms), ...measured(some) })),
      upstreams: sorted([...engines].map(([upstream, some]) => ({ upstream, ...measured(some) }))),
      failures: counted(
        asked.filter(({ outcome }) => outcome === "failed"),
        ({ route, code }) => ({ upstream: route?.upstream ?? null, code }),
      ).map(([one, requests]) => ({ ...one, requests })),
      followed: counted(attempts, ({ upstream, outcome }) => ({ upstream, outcome })).map(([one, attempts]) => ({
        ...one,
        attempts,
      })),
    });
  }

  test("adds up the requests of its span, by hour and by engine, with the times that they had", async () => {
    const at = (hours: number) => new Date(start_ms + hours * hour_ms);
    for (const span of [
      { from: at(-1), to: at(20) },
      { from: at(1.25), to: at(3) },
      { from: at(30), to: at(31) },
    ]) {
      await tells(span);
      await tells({ ...span, model: models[0] });
      await tells({ ...span, upstream: "gpu-1" });
      for (const organizationId of organizations) await tells({ ...span, organizationId });
      await tells({ ...span, upstream: "gpu-2", model: models[1] });
    }
  });
});

/** The smallest value that at least this share of the values does not exceed. */
function within(share: number, values: readonly number[]): number | null {
  return values.toSorted((one, other) => one - other)[Math.max(0, Math.ceil(share * values.length) - 1)] ?? null;
}

function measured(some: readonly Served[]): UpstreamMeasures {
  const firsts = some.flatMap(({ route }) => route?.firstPart_ms ?? []);
  const ends = some.map(({ duration_ms }) => duration_ms);
  return {
    requests: some.length,
    failed: some.filter(({ outcome }) => outcome === "failed").length,
    cancelled: some.filter(({ outcome }) => outcome === "cancelled").length,
    firstPartP50_ms: within(0.5, firsts),
    firstPartP95_ms: within(0.95, firsts),
    durationP50_ms: within(0.5, ends),
    durationP95_ms: within(0.95, ends),
  };
}

/** Names with their counts: the most frequent first, equal counts by name; a missing name comes last. */
function counted<One, Named extends object>(some: readonly One[], nameOf: (one: One) => Named): [Named, number][] {
  const names = Map.groupBy(some.map(nameOf), (named) => JSON.stringify(Object.values(named).map((one) => one ?? "~")));
  return [...names]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([, named]): [Named, number] => [named[0]!, named.length])
    .toSorted(([, one], [, other]) => other - one);
}

const sorted = <One extends { upstream: string | null }>(some: readonly One[]): One[] =>
  some.toSorted((one, other) => ((one.upstream ?? "~") < (other.upstream ?? "~") ? -1 : 1));
