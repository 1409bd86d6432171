/** The end of a request, told to those who count. */
import type { Dependencies } from "../api/dependencies.ts";

export function closing({
  bounds,
  lifecycle,
  metrics,
  log,
}: Pick<Dependencies, "bounds" | "lifecycle" | "metrics" | "log">): Dependencies["closed"] {
  return (call, status) => {
    lifecycle.leave(call);
    bounds.leftovers.lived(call.elapsed_ms(), lifecycle.openCount);
    const ended = call.endStatus(status);
    const code = call.left ? undefined : call.notes.code;
    const traceId = call.trace?.sampledId;
    metrics.request({ route: call.route, status: ended, code, seconds: call.elapsed_ms() / 1000, traceId });
    call.trace?.end(ended, code);
    log.request(call, status);
  };
}
