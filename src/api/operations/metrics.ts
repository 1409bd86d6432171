/** GET /metrics, for Prometheus: on the operator's port if there is one. */
import Type from "typebox";
import { contentTypes } from "../../telemetry/text.ts";
import { operation } from "../operation.ts";

export const getMetrics = operation({
  operationId: "getMetrics",
  method: "get",
  path: "/metrics",
  tag: "Health",
  summary: "Counters and gauges",
  description: "What this node counts, in Prometheus's text format.",
  scope: null,
  success: { description: "The metrics", headers: [], content: { "text/plain": { schema: Type.String() } } },
  faults: [],
  otherFaults: false,
  examples: [],
  handle: async ({ metrics }, { request }) => {
    const format = request.headers.get("accept")?.includes("application/openmetrics-text")
      ? "openmetrics"
      : "prometheus";
    return new Response(await metrics.render(format), {
      headers: { "content-type": contentTypes[format], "cache-control": "no-store", vary: "accept" },
    });
  },
});
