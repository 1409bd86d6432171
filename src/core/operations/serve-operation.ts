/**
 * The checks before every handler, in the decided order (docs/design/service.md, Order of checks): credential,
 * organization and scope; the key's rate of requests; parameters; body. An operation declares what it needs, and checks
 * none of it by hand.
 */
import { planOf } from "../admission/allowance.ts";
import { SlowRefusal } from "../auth/unknown-credentials.ts";
import type { Principal } from "../auth/verdict.ts";
import type { Call } from "../http/call.ts";
import { frame, type Serve } from "../http/frame.ts";
import { requireDescriptors } from "../http/shed.ts";
import { Fault } from "../inference/fault.ts";
import { ratesOverPlan } from "../store/over-plan.ts";
import { together } from "../time/turns.ts";
import { authorize } from "./authorize.ts";
import { refused } from "./decision.ts";
import type { Dependencies } from "./dependencies.ts";
import { faultBodyOf } from "./fault-body.ts";
import type { Operation } from "./operation.ts";
import { guard } from "./parameters.ts";
import { idIn, queryOf } from "./path.ts";

export function serveOperation(dependencies: Dependencies, operation: Operation): Serve {
  const { path, scope, metered, faultShape, refusedAs, request: body } = operation;
  const guarded = guardsOf(operation);
  const soon = together();
  const faultBody = faultBodyOf(faultShape);
  /**
   * Resolves when all requests of this poll have come as far: docs/design/runtime.md, Bun as a server. Earlier refusals
   * are answered at once: while an answer is outstanding, the runtime takes no further request of its connection.
   */
  const othersArrived = () => new Promise<void>((resolve) => soon(resolve));
  const work = async (call: Call) => {
    if (scope !== null) requireDescriptors(dependencies);
    const principal = scope === null ? null : await authorize(dependencies, call, scope);
    if (principal) call.holds(dependencies.bounds.memory.reservation(principal.key.id));
    if (body && principal) {
      countArrival(dependencies, operation, principal);
      call.keepOpen();
      await othersArrived();
    }
    const parameters = guarded(call.request);
    const read = body && principal ? await body.read(dependencies, call, principal.organization) : null;
    if (read) call.bodyRead();
    return operation.handle(dependencies, call, { principal, ...parameters, body: read });
  };
  return frame(dependencies, {
    path,
    isTraced: scope !== null,
    faultBody: (fault, requestId, request) =>
      faultBody(withConsole(dependencies, fault, requestId), requestId, request),
    ...(operation.faultHeaders ? { faultHeaders: operation.faultHeaders } : {}),
    ...(metered ? { failed: (call, fault) => refused(dependencies, call, metered, fault) } : {}),
    work: refusedAs ? (call) => work(call).catch((thrown) => Promise.reject(refusing(thrown, refusedAs))) : work,
  });
}

/** The fault of a limit, with a link to the request in the console, where its person can ask for more. */
function withConsole({ consoleUrl }: Dependencies, fault: Fault, requestId: string): Fault {
  const origin = fault.details.limit ? consoleUrl() : null;
  if (origin === null) return fault;
  const body = { ...fault.details.body, console_url: `${origin}/requests/${requestId}` };
  return new Fault(fault.code, fault.message, { ...fault.details, body });
}

/**
 * The fault that clients of the operation get. A slow refusal stays unchanged, because its wait depends on its type.
 */
function refusing(thrown: unknown, refusedAs: (fault: Fault) => Fault): unknown {
  return thrown instanceof Fault && !(thrown instanceof SlowRefusal) ? refusedAs(thrown) : thrown;
}

/** Counts a request that has a body, because the body's parse costs time even if the request is refused later. */
function countArrival({ arrivals, catalog }: Dependencies, { metered }: Operation, principal: Principal): void {
  const { key, organization, overPlan } = principal;
  const plan = planOf(catalog().plans, organization);
  arrivals.take(key.id, metered ? "inference" : "count", plan ? ratesOverPlan(plan, overPlan) : undefined);
}

/** The id in the path is checked by the route (path.ts), and is plain text here. */
function guardsOf({ path, params, query, headers }: Operation) {
  const guardQuery = query && guard(query);
  const guardHeaders = headers && guard(headers);
  return (request: Request) => ({
    params: params ? { id: idIn(path, request) } : {},
    query: guardQuery ? guardQuery(textIn(queryOf(request))) : {},
    headers: guardHeaders ? guardHeaders(textIn(request.headers)) : {},
  });
}

function textIn(values: URLSearchParams | Headers): (name: string) => string | null {
  return (name) => values.get(name);
}
