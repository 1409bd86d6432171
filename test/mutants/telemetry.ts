import type { Mutant } from "./mutant.ts";

const commands = "db/migrations/0001_baseline/ledger_commands.sql";
const node = "test/features/telemetry/node.test.ts";
const rule = "docs/design/service.md, What a node tells of itself";

export const telemetry: Mutant[] = [
  {
    name: "an alert takes two installations for one whose configurations differ",
    file: "deploy/prometheus/rules.yaml",
    find: "count by (job, namespace) (count by (job, namespace, hash) (",
    replace: "count(count by (hash) (",
    caughtBy: ["test/features/telemetry/dashboards.test.ts > looks at each installation by itself"],
    rule: "docs/operating.md, Runbook",
  },
  {
    name: "a label has as many values as there are",
    file: "src/features/telemetry/cells.ts",
    find: "if (!values.has(value) && values.size < most) values.add(value);",
    replace: "values.add(value);",
    caughtBy: ["test/features/telemetry/table.test.ts > a value beyond its bound"],
    rule,
  },
  {
    name: "what is as large as a bound is beyond it",
    file: "src/features/telemetry/distribution.ts",
    find: "value > this.#bounds[bucket]!",
    replace: "value >= this.#bounds[bucket]!",
    caughtBy: ["test/features/telemetry/text.test.ts > as prometheus"],
    rule,
  },
  {
    name: "a stream that failed counts as 200",
    file: "src/core/http/call.ts",
    find: "    return this.#isStreaming && code !== undefined && code in faultCatalogue\n",
    replace: "    return !this.#isStreaming && code !== undefined && code in faultCatalogue\n",
    caughtBy: [`${node} > each request counts`],
    rule,
  },
  {
    name: "all 503 are one",
    file: "src/features/telemetry/metrics.ts",
    find: 'inc("http_requests_total", { route, status: String(status), code });',
    replace: 'inc("http_requests_total", { route, status: String(status), code: code && "" });',
    caughtBy: [`${node} > each request counts`],
    rule,
  },
  {
    name: "organizations are told to clients",
    file: "src/features/telemetry/metrics.ts",
    find: "() => (isPrivate ? organizations_max() : 0),",
    replace: "() => organizations_max(),",
    caughtBy: [node],
    rule,
  },
  {
    name: "names of engines are told to clients",
    file: "src/features/telemetry/metrics.ts",
    find: '(isPrivate ? (upstream ?? "") : "");',
    replace: '(upstream ?? "");',
    caughtBy: [node],
    rule,
  },
  {
    name: "spans name the caller though nobody asked for it",
    file: "src/features/telemetry/spans.ts",
    find: "    if (!this.#hasCallerIds) return;\n",
    replace: "",
    caughtBy: ["test/features/telemetry/otel.test.ts > a request is a span"],
    rule,
  },
  {
    name: "a trace that is not sampled is an exemplar",
    file: "src/features/telemetry/spans.ts",
    find: "return traceFlags & TraceFlags.SAMPLED ? traceId : undefined;",
    replace: "return traceFlags >= 0 || TraceFlags.SAMPLED ? traceId : undefined;",
    caughtBy: ["test/features/telemetry/otel.test.ts > a request is a span"],
    rule,
  },
  {
    name: "the hourly look is left out for a roll-up",
    file: "src/stores/postgres/audit.ts",
    find: ", { wait_ms })",
    replace: ", { wait_ms: 0 * wait_ms })",
    caughtBy: ["test/core/store/audit.test.ts > the audit on postgres > a roll-up that is under way"],
    rule: "docs/design/metering.md, Audit",
  },
  {
    name: "a batch tells the time since it has its locks",
    file: commands,
    find: "waited_us bigint := date_part('epoch', clock_timestamp() - began) * 1000000;",
    replace: "waited_us bigint := date_part('epoch', clock_timestamp() - clock) * 1000000;",
    caughtBy: [`${node} > a batch tells how long it waited`],
    rule: "docs/design/metering.md, Rule 1: One call and one barrier",
  },
  {
    name: "the log does not say why an engine was not reached",
    file: "src/features/telemetry/log.ts",
    find: "return cause instanceof Error ? text.replace(",
    replace: "return cause instanceof RangeError ? text.replace(",
    caughtBy: ["test/features/telemetry/log.test.ts > the line of an engine that was not reached"],
    rule: "docs/operating.md, SluiceUpstreamFailing",
  },
];
