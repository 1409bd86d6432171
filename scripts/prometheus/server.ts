// Starts Debian's Prometheus, queries it, and runs its promtool.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../test/harness/daemon.ts";
import { debianProgram } from "../../test/harness/debian.ts";
import { until } from "../../test/harness/until.ts";

const root = join(import.meta.dir, "../..");
export const rulesFolder = join(root, "deploy/prometheus");

export interface Prometheus {
  url: string;
  query(expression: string): Promise<Series[]>;
  /** The values of an expression at `moments` points in time between `since_ms` and now, by Prometheus' clock. */
  history(expression: string, since_ms: number, moments: number): Promise<History[]>;
  stop(): Promise<void>;
}

export interface Series {
  metric: Record<string, string>;
  value: [number, string];
}
export interface History {
  metric: Record<string, string>;
  values: [number, string][];
}

const program = (name: string) => debianProgram(name, { package: "prometheus", folder: "usr/bin" });

/** Runs promtool in the folder of the rules. Throws if it reports an error. */
export async function promtool(words: string[], input?: string): Promise<void> {
  const { path, env } = await program("promtool");
  const child = Bun.spawn([path, ...words], {
    cwd: rulesFolder,
    env,
    stdin: input === undefined ? "ignore" : new Blob([input]),
    stdout: "inherit",
    stderr: "inherit",
  });
  if ((await child.exited) !== 0) throw new Error(`promtool ${words.join(" ")} found something wrong`);
}

/** Starts Prometheus. `scrapes` has the entries of `scrape_configs`, each on a line. */
export async function startPrometheus(folder: string, rules: string, scrapes: string[]): Promise<Prometheus> {
  const { path, env } = await program("prometheus");
  const port = await freePort();
  const configuration = join(folder, "prometheus.yml");
  writeFileSync(
    configuration,
    `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ["${rules}"]
scrape_configs:
${scrapes.map((scrape) => `  - ${scrape}\n`).join("")}`,
  );
  const child = Bun.spawn(
    [
      path,
      ...[`--config.file=${configuration}`, `--storage.tsdb.path=${join(folder, "data")}`],
      ...[`--web.listen-address=127.0.0.1:${port}`, "--enable-feature=exemplar-storage", "--log.level=error"],
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
  return {
    url,
    query: (expression) => asked<Series>(url, "query", { query: expression }),
    history(expression, since_ms, moments) {
      const end = Date.now() / 1000;
      const start = since_ms / 1000;
      const step = String(Math.max(1, (end - start) / moments));
      return asked<History>(url, "query_range", { query: expression, start: String(start), end: String(end), step });
    },
    async stop() {
      child.kill();
      await child.exited;
    },
  };
}

async function asked<Row>(url: string, what: string, words: Record<string, string>): Promise<Row[]> {
  const response = await fetch(`${url}/api/v1/${what}?${new URLSearchParams(words)}`);
  const { status, error, data } = (await response.json()) as {
    status: string;
    error?: string;
    data?: { result: Row[] };
  };
  if (status !== "success") throw new Error(`Prometheus refuses ${words.query}: ${error}`);
  return data!.result;
}
