// `npm run prometheus`: checks deploy/prometheus and deploy/grafana with a real Prometheus from Debian, which scrapes a
// real node under load. promtool checks the metrics' text, the rules and their tests. Then every query of a dashboard
// or an alert is run.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { dashboards } from "../deploy/dashboards.ts";
import { freePort } from "../test/harness/daemon.ts";
import { redisUrl } from "../test/harness/services.ts";
import { startSimulator } from "../test/harness/simulator.ts";
import { type Sluice, startSluice } from "../test/harness/sluice.ts";
import { until } from "../test/harness/until.ts";
import { type Prometheus, promtool, rulesFolder, startPrometheus } from "./prometheus/server.ts";

const model = "acme/writer";
/**
 * The configuration of the node. The engine's URL has a host name to resolve. The engine serves one request at a time,
 * so that of two requests one waits. The upstream `spare` is drained.
 */
const configOf = (enginePort: number) => `
upstreams:
  main: { url: "http://localhost:${enginePort}/v1", resolve: { family: ipv4 } }
  spare: { url: "http://localhost:${enginePort}/v1", resolve: { family: ipv4 } }
metrics: { organizations_max: 10 }
metering: { currency: USD }
models:
  - id: ${model}
    created: 1790000000
    context_window: 131072
    prices: { input: 0.001, output: 0.1 }
    routes: [{ upstream: main, model: writer, concurrent_max: 1 }, { upstream: spare, model: writer, priority: 1 }]
`;

async function main(): Promise<void> {
  await promtool(["check", "rules", "rules.yaml"]);
  await promtool(["test", "rules", "rules.test.yaml"]);
  const operatorPort = await freePort();
  const engine = await startSimulator();
  const service = await startSluice({
    store: "postgres",
    config: configOf(engine.port),
    env: { SLUICE_OPERATOR_PORT: String(operatorPort), REDIS_URL: await redisUrl() },
  });
  const folder = mkdtempSync(join(tmpdir(), "sluice-prometheus-"));
  const prometheus = await startPrometheus(folder, join(rulesFolder, "rules.yaml"), [
    `{ job_name: sluice, static_configs: [{ targets: ["127.0.0.1:${operatorPort}"] }] }`,
  ]);
  try {
    await service.json("upstream", "drain", "spare");
    // A rate is computed from two scrapes, so events before the first scrape are in no rate.
    for (const scrapes of [1, 3]) {
      await load(service);
      await until(async () => (await seen(prometheus)) >= scrapes, 30_000, "scrapes after the load");
    }
    const text = await (await fetch(`http://127.0.0.1:${operatorPort}/metrics`)).text();
    await promtool(["check", "metrics"], text);
    await askAll(prometheus);
  } finally {
    await prometheus.stop();
    await service.stop();
    await engine.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Sends requests that succeed, that are refused, and that fail before or in the middle of their responses. */
async function load(service: Sluice): Promise<void> {
  const ask = async (directives: string, stream: boolean, key?: string) => {
    const body = {
      model,
      stream,
      messages: [{ role: "user", content: `Say it. [simulator: ${directives}]` }],
    };
    const init = key === undefined ? {} : { key };
    await (await service.post("/v1/chat/completions", body, init)).text();
  };
  for (const stream of [true, false]) {
    for (const directives of ["tokens=12 cached=4", "reasoning=8 tokens=4", "status=503", "tps=100 cut-after=3"]) {
      await ask(directives, stream);
    }
    await ask("tokens=1", stream, "slk_no_such_key");
  }
  await Promise.all([ask("tokens=10 tps=20", true), ask("tokens=10 tps=20", false)]);
}

/** The number of scrapes that contain the failed requests of the load. */
async function seen({ query }: Prometheus): Promise<number> {
  const [series] = await query('count_over_time(http_requests_total{status="503",code="upstream_unavailable"}[5m])');
  return Number(series?.value[1] ?? 0);
}

/** Titles of dashboard panels for which a healthy node has no data after a minute. */
const mayBeEmpty = [
  /without a healthy route/,
  /Refused for room/,
  /Answers not kept/,
  // The panel shows only upstreams with `scope: fleet`.
  /^One limit for all nodes$/,
  /not believed/,
  /^Resolutions with a problem$/,
  /Reported ÷ counted/,
  /^Failures$/,
  /^Opened and lost$/,
  // These panels show only engines with unexpected responses, and engines that cannot take a field of a request.
  /^Ends in unknown words$/,
  /^Stray answers$/,
  /^Not sent as written$/,
];

async function askAll({ query }: Prometheus): Promise<void> {
  const empty: string[] = [];
  let asked = 0;
  for (const [name, panels] of Object.entries(dashboards)) {
    for (const { title, queries } of panels) {
      for (const [, expression] of queries) {
        asked += 1;
        const result = await query(expression);
        if (result.length === 0 && !mayBeEmpty.some((pattern) => pattern.test(title))) empty.push(`${name}: ${title}`);
      }
    }
  }
  const { groups } = parse(readFileSync(join(rulesFolder, "rules.yaml"), "utf8")) as {
    groups: { rules: { expr: string }[] }[];
  };
  for (const { expr } of groups.flatMap(({ rules }) => rules)) {
    asked += 1;
    await query(expr);
  }
  const firing = await query('ALERTS{alertstate="firing"}');
  console.log(`${asked} queries; firing: ${firing.map(({ metric }) => metric.alertname).join(", ") || "none"}`);
  if (empty.length > 0) throw new Error(`these panels show nothing of a node that was used: ${empty.join("; ")}`);
}

await main();
process.exit(0);
