/**
 * All metrics. To add one, write its row into a file of table/, set its values in metrics.ts or in
 * src/node/readings.ts, and run scripts/metrics.ts, which writes the table of docs/operating.md. Tests check names,
 * labels and bounds. Pure.
 */
import type { MetricRow } from "./metric.ts";
import { inferenceMetrics } from "./table/inference.ts";
import { nodeMetrics } from "./table/node.ts";
import { requestMetrics } from "./table/requests.ts";
import { usageMetrics } from "./table/usage.ts";

export const table = { ...requestMetrics, ...inferenceMetrics, ...usageMetrics, ...nodeMetrics };

type Table = typeof table;
export type MetricName = keyof Table;
export type NameOf<Type extends MetricRow["type"]> = {
  [Name in MetricName]: Table[Name]["type"] extends Type ? Name : never;
}[MetricName];
/** The labels of a metric with their values; `unknown` for a metric without labels. */
export type LabelsOf<Name extends MetricName> = Table[Name] extends { labels: infer Labels }
  ? Record<keyof Labels & string, string>
  : Record<never, string>;

/** The table as docs/operating.md shows it. The label `le` marks a histogram, and `_total` a counter. */
export function tableShown(): string {
  const head = "| metric | labels | what it is |\n|---|---|---|\n";
  const rows = Object.entries<MetricRow>(table).map(([name, { type, labels = {}, across, help }]) => {
    const named = [...Object.keys(labels), ...(type === "histogram" ? ["le"] : [])].map((label) => `\`${label}\``);
    if (across === "worker") named.push("(`worker`)");
    return `| \`${name}\` | ${named.join(", ")} | ${help.replace(/\.$/, "")} |\n`;
  });
  return head + rows.join("");
}
