// Mutants of the fleet: which nodes are running, which are gone, and which of their values are shown.

import type { Mutant } from "./mutant.ts";

const reporting = "test/node/reporting.test.ts";
const view = "test/admin/management/fleet-view.test.ts";
const follow = "test/core/http/follow.test.ts";
const rule = "docs/operating.md, The fleet";

const list = "test/core/store/request-list.test.ts";
const listing = "docs/operating.md, Listing requests";

export const fleet: Mutant[] = [
  {
    name: "with fewer slots than processes an engine stops while Redis is silent",
    file: "src/features/sharing/share.ts",
    find: "Math.max(1, Math.floor(limit / this.processes))",
    replace: "Math.floor(limit / this.processes)",
    caughtBy: ["test/stores/redis/engine-slots.test.ts > of fewer slots than processes"],
    rule: "docs/design/routing.md",
  },
  {
    name: "a list looks for a request only in the hour of its admission",
    file: "src/stores/postgres/request-hours.ts",
    find: "const slack_ms = hour_ms;",
    replace: "const slack_ms = 0;",
    caughtBy: [list],
    rule: listing,
  },
  {
    name: "a list goes on where only one of its sources was read to",
    file: "src/stores/postgres/request-list.ts",
    find: "    .toSorted()\n    .at(-1)!;\n  const all",
    replace: "    .toSorted()\n    .at(0)!;\n  const all",
    caughtBy: [list],
    rule: listing,
  },
  {
    name: "a list ends where it stopped reading roll-ups",
    file: "src/stores/postgres/request-hours.ts",
    find: "not exists (select from bottom) as is_whole",
    replace: "true as is_whole",
    caughtBy: [list],
    rule: listing,
  },
  {
    name: "a list forgets what no roll-up has read yet",
    file: "src/stores/postgres/request-hours.ts",
    find: "cross join lateral usage_recorded_hours(a.read_until, 9223372036854775807,",
    replace: "cross join lateral usage_recorded_hours(a.read_until, 0,",
    caughtBy: [list],
    rule: listing,
  },
  {
    name: "a change of a node is told only with the next report",
    file: "src/node/reporting.ts",
    find: "if (state === reported.state && now_ms",
    replace: "if (now_ms",
    caughtBy: [reporting],
    rule,
  },
  {
    name: "a worker that is gone still counts",
    file: "src/admin/management/fleet-view.ts",
    find: "const reports = live.length > 0 ? live : all;",
    replace: "const reports = all;",
    caughtBy: [view],
    rule,
  },
  {
    name: "a node that is gone decides which configuration is the usual one",
    file: "src/admin/management/fleet-view.ts",
    find: "Map.groupBy(live.length > 0 ? live : nodes,",
    replace: "Map.groupBy(nodes,",
    caughtBy: [view],
    rule,
  },
  {
    name: "an answer is sent again although it has not changed",
    file: "src/admin/http/follow.ts",
    find: "if (data !== this.#last) {",
    replace: "if (data !== null) {",
    caughtBy: [follow],
    rule,
  },
  {
    name: "whoever follows a node once keeps a place for ever",
    file: "src/admin/http/follow.ts",
    find: "      followers.count -= 1;\n      owner.closed();",
    replace: "        owner.closed();",
    caughtBy: [follow],
    rule,
  },
  {
    name: "an operator who was revoked goes on reading",
    file: "src/admin/http/gate.ts",
    find: "      if (!isAdmitted) await admitted(entrance, verb, call);\n",
    replace: "",
    caughtBy: [follow],
    rule: "docs/design/keys.md, Who administers",
  },
  {
    name: "a drain that ends by itself is one that was forgotten",
    file: "src/features/telemetry/metrics.ts",
    find: "    .filter(({ until }) => until === null)\n",
    replace: "",
    caughtBy: ["test/features/telemetry/metrics.test.ts"],
    rule: "docs/routing.md, Draining an engine",
  },
  {
    name: "a killed process whose report is of the future counts in the fleet",
    file: "src/stores/postgres/fleet-reports.ts",
    find: "abs(extract(epoch from store_now() - reported_at))",
    replace: "extract(epoch from store_now() - reported_at)",
    caughtBy: ["test/core/store/fleet.test.ts > a process that reports knows how many"],
    rule: "docs/limits.md",
  },
];
