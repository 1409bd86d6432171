/**
 * The service of a node whose database cannot be reached yet: probes are answered, and everything else is unavailable.
 */
import { type Framed, frame } from "../core/http/frame.ts";
import { json } from "../core/http/json.ts";
import { Fault } from "../core/inference/fault.ts";
import type { Dependencies } from "../core/operations/dependencies.ts";
import { faultBodyOf } from "../core/operations/fault-body.ts";
import { readinessAnswer } from "../core/operations/health.ts";
import { probes } from "../core/operations/list.ts";
import type { Operation } from "../core/operations/operation.ts";
import { queryOf } from "../core/operations/path.ts";
import { faultBodyForPath } from "../features/unserved/unknown-path.ts";
import { type RoutingDependencies, routed } from "./app.ts";
import { operations } from "./operations.ts";

type WaitingDependencies = RoutingDependencies & Pick<Dependencies, "readiness" | "configurationHash">;

/**
 * All paths are unavailable, not only those of clients' operations, because sign-in, management and metrics have other
 * paths.
 */
export function waitingApp(dependencies: WaitingDependencies) {
  return routed(dependencies, operations, {
    serve: (operation) =>
      frame(dependencies, probes.includes(operation) ? probe(dependencies, operation) : away(operation)),
    nowhere: { path: "/*", faultBody: faultBodyForPath, work: unavailable },
  });
}

function probe(dependencies: WaitingDependencies, { path }: Operation): Framed {
  return {
    path,
    faultBody: faultBodyOf(),
    work: ({ request }) =>
      path === "/readyz"
        ? readinessAnswer(dependencies, queryOf(request).has("verbose"), {})
        : json(200, { status: "ok" }),
  };
}

function away({ path, faultShape, faultHeaders }: Operation): Framed {
  return { path, faultBody: faultBodyOf(faultShape), ...(faultHeaders ? { faultHeaders } : {}), work: unavailable };
}

function unavailable(): never {
  throw new Fault("storage_unavailable", "The service waits for its database. Please try again.", {
    retryAfterSeconds: 1,
  });
}
