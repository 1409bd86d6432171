/** The reports of the fleet's processes, on both kinds of database. */
import { beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ProcessReport } from "../../../src/core/store/fleet.ts";
import { fleet, fleetReports } from "../../../src/stores/postgres/fleet-reports.ts";
import { reportOf } from "../../admin/management/fleet-reports.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { databaseForTests, withClock } from "../../stores/postgres/databases.ts";

setDefaultTimeout(60_000);

const at = (second: number) => new Date(Date.UTC(2026, 10, 25, 12, 0, second));

describe.each(databaseKinds(import.meta.path))("%s", (kind) => {
  const db = databaseForTests(kind);
  beforeEach(() => db.exec("truncate fleet_process"));

  const reportAt = (second: number, report: ProcessReport) =>
    withClock(db, at(second), () => fleetReports(db).report(report));
  const listedAt = (second: number) => withClock(db, at(second), () => fleet(db).listProcesses());

  test("a process has its last report, with its age by the store's clock, and the oldest node comes first", async () => {
    const young = reportOf({ startedAt: at(9) });
    const old = reportOf({ startedAt: at(1), worker: 2, problems: ['redis: "away"'] });
    await reportAt(10, { ...young, configuration: "earlier" });
    await reportAt(11, old);
    await reportAt(12, young);
    expect(await listedAt(13)).toEqual([
      { ...old, age_ms: 2_000 },
      { ...young, age_ms: 1_000 },
    ]);
  });

  test("a process that reports knows how many do, and one that has not knows of none but itself", async () => {
    const [own, sibling] = [fleetReports(db), reportOf({ worker: 2 })];
    expect(own.processes()).toBe(1);
    const report = reportOf({ worker: 1 });
    const reported = (second: number) => withClock(db, at(second), () => own.report(report));
    await reported(1);
    expect(own.processes()).toBe(1);
    await reportAt(2, { ...sibling, node: report.node });
    await reportAt(3, reportOf({}));
    await reported(3);
    // On the embedded database, the others were killed: it has one process.
    const isAlone = kind === "pglite";
    expect(own.processes()).toBe(isAlone ? 1 : 3);
    await fleetReports(db).leave(report.node, 2);
    await reported(12);
    expect(own.processes()).toBe(isAlone ? 1 : 2);
    await reported(13);
    expect(own.processes()).toBe(1);
    // This one ended before the store's clock was set back.
    await reportAt(50, reportOf({}));
    await reported(14);
    expect(own.processes()).toBe(1);
  });

  test("a process that leaves takes its report along, and no other", async () => {
    const [one, other] = [reportOf({ worker: 1 }), reportOf({ worker: 2 })];
    const sibling = { ...other, node: one.node };
    for (const report of [one, sibling]) await reportAt(1, report);
    await fleetReports(db).leave(one.node, 1);
    expect((await listedAt(1)).map(({ worker }) => worker)).toEqual([2]);
  });

  test("reports that are too old are forgotten, and younger ones are not", async () => {
    const [gone, here] = [reportOf({ startedAt: at(1) }), reportOf({ startedAt: at(2) })];
    await reportAt(1, gone);
    await reportAt(20, here);
    await withClock(db, at(31), () => fleetReports(db).forget(20_000));
    expect((await listedAt(31)).map(({ node }) => node.id)).toEqual([here.node.id]);
  });

  test("nodes that come back together neither wait for each other for ever nor lose a report", async () => {
    const reports = Array.from({ length: 20 }, () => reportOf({}));
    for (const report of reports) await reportAt(1, report);
    const rounds = reports.map(async (report) => {
      await fleetReports(db).report(report);
      await fleetReports(db).forget(60_000);
    });
    await Promise.all(rounds);
    const listed = await fleet(db).listProcesses();
    expect(new Set(listed.map(({ node }) => node.id))).toEqual(new Set(reports.map(({ node }) => node.id)));
  });
});

test("whoever reports hears that the store failed", async () => {
  const reports = fleetReports({
    kind: "postgres",
    query: async () => {
      throw new Error("the store is away");
    },
  });
  const { node } = reportOf({});
  await expect(reports.report(reportOf({}))).rejects.toThrow("away");
  await expect(reports.leave(node, 1)).rejects.toThrow("away");
  await expect(reports.forget(1)).rejects.toThrow("away");
});
