/** Metrics with their values as text: in Prometheus' format, and as OpenMetrics with exemplars. Pure. */

export type Format = "prometheus" | "openmetrics";

export const contentTypes: Record<Format, string> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** A metric with its values. A copy may travel to another process. */
export interface Told {
  name: string;
  help: string;
  type: string;
  values: ToldValue[];
}

export interface ToldValue {
  /** Of a histogram, whose buckets, sum and count each have a name of their own. */
  metricName?: string;
  labels: Record<string, string | number>;
  value: number;
  exemplar?: Exemplar | undefined;
}

/** The traced request that was observed last in a bucket. */
export interface Exemplar {
  traceId: string;
  value: number;
  /** Since the epoch. */
  at_seconds: number;
}

export function textOf(metrics: readonly Told[], format: Format): string {
  const isOpen = format === "openmetrics";
  const families = metrics.map((metric) => familyOf(metric, isOpen));
  return isOpen ? `${families.join("\n")}\n# EOF\n` : `${families.join("\n\n")}\n`;
}

function familyOf({ name, help, type, values }: Told, isOpen: boolean): string {
  // A counter is named without `_total` there, its values with it.
  const family = isOpen && type === "counter" ? name.replace(/_total$/, "") : name;
  const lines = values.map(({ metricName = name, labels, value, exemplar }) => {
    const line = `${metricName}${labelled(labels)} ${numeral(value)}`;
    return isOpen && exemplar ? `${line} # ${exemplified(exemplar)}` : line;
  });
  return [`# HELP ${family} ${escaped(help)}`, `# TYPE ${family} ${type}`, ...lines].join("\n");
}

function exemplified({ traceId, value, at_seconds }: Exemplar): string {
  return `${labelled({ trace_id: traceId })} ${numeral(value)} ${at_seconds}`;
}

function labelled(labels: ToldValue["labels"]): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escaped(String(value)).replaceAll('"', '\\"')}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

/** `NaN`, `+Inf` and `-Inf`, where it is no number of digits. */
function numeral(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}
