/** Makes the metrics and traces of a node. */
import { descriptorLimit } from "../config/machine.ts";
import { prometheusMetrics } from "../features/telemetry/metrics.ts";
import { openTraces } from "../features/telemetry/open.ts";
import { watchProcess } from "../features/telemetry/process.ts";
import { disposable, type Foundation } from "./foundation.ts";

export type Telemetry = Awaited<ReturnType<typeof startTelemetry>>;

export async function startTelemetry({ serving, settings, outage }: Foundation) {
  await using ending = new AsyncDisposableStack();
  const { configuration, version } = serving;
  const metrics = prometheusMetrics({
    version,
    isPrivate: settings.server.operator !== null,
    organizations_max: () => configuration.current().metrics.organizations_max,
  });
  const process = watchProcess(metrics, descriptorLimit());
  serving.database.watch(metrics);
  const traces = await openTraces(configuration.current().telemetry, {
    version,
    instanceId: Bun.randomUUIDv7(),
    failed: outage("telemetry_unsent"),
  });
  ending.defer(() => traces?.stop());
  return disposable({ metrics, traces, process }, ending);
}
