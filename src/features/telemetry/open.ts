/** Opens the exporters of traces and metrics. If nothing is to be sent, nothing of OpenTelemetry is loaded. */
import type { Traces } from "../../core/usage/traces.ts";
import type { TelemetryParts, TelemetrySettings } from "./traces.ts";

/** Null if nothing is to be sent. */
export async function openTraces(
  settings: TelemetrySettings | null,
  parts: Omit<TelemetryParts, "settings">,
): Promise<Traces | null> {
  if (settings === null) return null;
  const { openTelemetry } = await import("./otel.ts");
  return openTelemetry({ ...parts, settings });
}
