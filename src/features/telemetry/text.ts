/** Metrics with their values as text: in Prometheus' format, and as OpenMetrics with exemplars. */

import { Registry, type RegistryContentType } from "prom-client";
import type { Format, Told } from "../../core/http/observer.ts";

export const contentTypes: Record<Format, string> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/**
 * prom-client writes them. Its own counters are not used (cells.ts counts), because it joins the labels at each count.
 */
export function textOf(metrics: readonly Told[], format: Format): Promise<string> {
  const registry = new Registry<RegistryContentType>();
  registry.setContentType(contentTypes[format] as RegistryContentType);
  for (const metric of metrics) {
    // prom-client adds `_total` again where OpenMetrics has it.
    const name =
      format === "openmetrics" && metric.type === "counter" ? metric.name.replace(/_total$/, "") : metric.name;
    const named = { ...metric, name };
    registry.registerMetric({ ...named, get: async () => named } as never);
  }
  return registry.metrics();
}
