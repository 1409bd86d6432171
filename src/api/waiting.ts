/** The service of a node whose database cannot be reached yet: its probes answer, and everything else is unavailable. */
import { type Framed, frame } from "../http/frame.ts";
import { json } from "../http/json.ts";
import { Fault } from "../inference/fault.ts";
import { type RoutingDependencies, routed } from "./app.ts";
import type { Dependencies } from "./dependencies.ts";
import { faultBodyForPath, faultBodyOf } from "./fault-body.ts";
import type { Operation } from "./operation.ts";
import { readinessAnswer } from "./operations/health.ts";
import { operations, probes } from "./operations.ts";
import { queryOf } from "./path.ts";

type WaitingDependencies = RoutingDependencies & Pick<Dependencies, "readiness" | "configurationHash">;

/** Paths that no client's operation has are unavailable too: sign-in, management and metrics are at some of them. */
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
