/** GET /metrics, for Prometheus: on the operator's port where there is one. */
import Type from "typebox";
import { metricsContentType } from "../metrics.ts";
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
  handle: async ({ metrics }) =>
    new Response(await metrics.render(), {
      headers: { "content-type": metricsContentType, "cache-control": "no-store" },
    }),
});
