/** Opens the exporters of traces and metrics. OpenTelemetry is loaded only if there is something to export. */
import type { Traces } from "../../core/usage/traces.ts";
import type { TelemetryParts, TelemetrySettings } from "./traces.ts";

export async function openTraces(
  settings: TelemetrySettings | null,
  parts: Omit<TelemetryParts, "settings">,
): Promise<Traces | null> {
  if (settings === null) return null;
  const { openTelemetry } = await import("./otel.ts");
  return openTelemetry({ ...parts, settings });
}
