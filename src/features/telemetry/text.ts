/** Writes metrics with their values as text: in Prometheus' format, or as OpenMetrics with exemplars. */

import { Registry, type RegistryContentType } from "prom-client";
import type { Format, Told } from "../../core/http/observer.ts";

export const contentTypes: Record<Format, string> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/**
 * The metrics as text, written by prom-client. Its own counters are not used (cells.ts counts instead), because they
 * join the labels at each count.
 */
export function metricsText(metrics: readonly Told[], format: Format): Promise<string> {
  const registry = new Registry<RegistryContentType>();
  registry.setContentType(contentTypes[format] as RegistryContentType);
  for (const metric of metrics) {
    // For OpenMetrics, prom-client adds `_total` itself.
    const name =
      format === "openmetrics" && metric.type === "counter" ? metric.name.replace(/_total$/, "") : metric.name;
    const named = { ...metric, name };
    registry.registerMetric({ ...named, get: async () => named } as never);
  }
  return registry.metrics();
}
