/** GET /metrics, for Prometheus: on the operator's port if there is one. */

import { unlisted } from "../../core/operations/unlisted.ts";
import { contentTypes } from "./text.ts";

export const getMetrics = unlisted({
  id: "getMetrics",
  method: "get",
  path: "/metrics",
  type: "text/plain",
  handle: async ({ metrics }, { request }) => {
    const accept = request.headers.get("accept");
    const format = accept?.includes("application/openmetrics-text") ? "openmetrics" : "prometheus";
    return new Response(await metrics.render(format), {
      headers: { "content-type": contentTypes[format], "cache-control": "no-store", vary: "accept" },
    });
  },
});
