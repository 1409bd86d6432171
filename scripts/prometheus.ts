// Holds deploy/prometheus and deploy/grafana to a real Prometheus, Debian's, which scrapes a real node under some load:
// promtool checks the metrics' text, the rules and their tests; then every query of a dashboard or an alert is asked.
// `npm run prometheus`.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { dashboards } from "../deploy/dashboards.ts";
import { freePort } from "../test/harness/daemon.ts";
import { libraryPath, unpackedTree } from "../test/harness/debian.ts";
import { redisUrl } from "../test/harness/services.ts";
import { type Sluice, startSluice } from "../test/harness/sluice.ts";
import { until } from "../test/harness/until.ts";

const root = join(import.meta.dir, "..");
const rules = join(root, "deploy/prometheus");
const tree = await unpackedTree(join(root, ".cache/debian-prometheus"), {
  packages: ["prometheus"],
  program: "usr/bin/prometheus",
});
const program = (name: string) => join(tree, "usr/bin", name);
const env = { ...process.env, LD_LIBRARY_PATH: libraryPath(tree) };

async function main(): Promise<void> {
  await promtool(["check", "rules", "rules.yaml"]);
  await promtool(["test", "rules", "rules.test.yaml"]);
  const operatorPort = await freePort();
  const service = await startSluice({
    store: "postgres",
    config: "metrics: { organizations_max: 10 }\n",
    env: { SLUICE_OPERATOR_PORT: String(operatorPort), REDIS_URL: await redisUrl() },
  });
  const folder = mkdtempSync(join(tmpdir(), "sluice-prometheus-"));
  const prometheus = await startPrometheus(folder, operatorPort);
  try {
    await load(service);
    const text = await (await fetch(`http://127.0.0.1:${operatorPort}/metrics`)).text();
    await promtool(["check", "metrics"], text);
    await until(async () => (await seen(prometheus.url)) >= 3, 30_000, "three scrapes after the load");
    await askAll(prometheus.url);
  } finally {
    prometheus.child.kill();
    await prometheus.child.exited;
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function promtool(words: string[], input?: string): Promise<void> {
  const child = Bun.spawn([program("promtool"), ...words], {
    cwd: rules,
    env,
    stdin: input === undefined ? "ignore" : new Blob([input]),
    stdout: "inherit",
    stderr: "inherit",
  });
  if ((await child.exited) !== 0) throw new Error(`promtool ${words.join(" ")} found something wrong`);
}

async function startPrometheus(folder: string, target: number) {
  const port = await freePort();
  const configuration = join(folder, "prometheus.yml");
  writeFileSync(
    configuration,
    `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ["${join(rules, "rules.yaml")}"]
scrape_configs: [{ job_name: sluice, static_configs: [{ targets: ["127.0.0.1:${target}"] }] }]
`,
  );
  const child = Bun.spawn(
    [
      program("prometheus"),
      ...[`--config.file=${configuration}`, `--storage.tsdb.path=${join(folder, "data")}`],
      ...[`--web.listen-address=127.0.0.1:${port}`, "--enable-feature=exemplar-storage", "--log.level=warn"],
    ],
    { env, stdout: "ignore", stderr: "inherit" },
  );
  const url = `http://127.0.0.1:${port}`;
  const isReady = () =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isReady, 30_000, "Prometheus");
  return { url, child };
}

/** Answers that go well, that are refused, and that fail before and in the middle. */
async function load(service: Sluice): Promise<void> {
  const ask = async (directives: string, stream: boolean, key?: string) => {
    const body = {
      model: "openai/gpt-oss-120b",
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
}

interface Series {
  metric: Record<string, string>;
  value: [number, string];
}

async function query(url: string, expression: string): Promise<Series[]> {
  const response = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`);
  const { status, error, data } = (await response.json()) as {
    status: string;
    error?: string;
    data?: { result: Series[] };
  };
  if (status !== "success") throw new Error(`Prometheus refuses ${expression}: ${error}`);
  return data!.result;
}

/** Scrapes since the load was over. */
async function seen(url: string): Promise<number> {
  const [series] = await query(
    url,
    'count_over_time(http_requests_total{status="503",code="upstream_unavailable"}[5m])',
  );
  return Number(series?.value[1] ?? 0);
}

/** What a well node of a minute has no series for. */
const mayBeEmpty = [
  /without a healthy route/,
  /Refused for room/,
  /not believed/,
  /Reported ÷ counted/,
  /^Failures$/,
  /^Opened and lost$/,
];

async function askAll(url: string): Promise<void> {
  const empty: string[] = [];
  let asked = 0;
  for (const [name, panels] of Object.entries(dashboards)) {
    for (const { title, queries } of panels) {
      for (const [, expression] of queries) {
        asked += 1;
        const result = await query(url, expression);
        if (result.length === 0 && !mayBeEmpty.some((pattern) => pattern.test(title))) empty.push(`${name}: ${title}`);
      }
    }
  }
  const { groups } = parse(readFileSync(join(rules, "rules.yaml"), "utf8")) as {
    groups: { rules: { expr: string }[] }[];
  };
  for (const { expr } of groups.flatMap(({ rules }) => rules)) {
    asked += 1;
    await query(url, expr);
  }
  const firing = await query(url, 'ALERTS{alertstate="firing"}');
  console.log(`${asked} queries; firing: ${firing.map(({ metric }) => metric.alertname).join(", ") || "none"}`);
  if (empty.length > 0) throw new Error(`these panels show nothing of a node that was used: ${empty.join("; ")}`);
}

await main();
process.exit(0);
