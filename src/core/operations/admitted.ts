/** The parts of a request's run that all operations share: its inputs, its start, and the headers of its answer. */
import { planOf } from "../admission/allowance.ts";
import { windowHeaders } from "../admission/refusal.ts";
import type { Principal } from "../auth/verdict.ts";
import type { Call } from "../http/call.ts";
import { reserveAnswer } from "../http/shed.ts";
import type { Operation } from "../store/ledger.ts";
import type { Run, RunRequest } from "../usage/run.ts";
import type { Dependencies } from "./dependencies.ts";
import { limitHeaders } from "./limit-headers.ts";
import { sessionOf } from "./session.ts";

interface Asking {
  principal: Principal;
  operation: Operation;
  /** The prefix of the response's id, such as `chatcmpl-`. */
  idPrefix: string;
  /** The model's id as the request names it. */
  model: string;
}

type CommonParts = Required<
  Pick<RunRequest, "requestId" | "principal" | "operation" | "identity" | "affinity" | "rateHeaders" | "holdAnswer">
>;

/**
 * A function of its own, because its closures live as long as the answer: made elsewhere, they would keep all variables
 * around them, and so the body, in memory.
 */
export function commonParts(
  dependencies: Dependencies,
  call: Call,
  { principal, operation, idPrefix, model }: Asking,
): CommonParts {
  return {
    requestId: call.requestId,
    principal,
    operation,
    identity: {
      responseId: idPrefix + dependencies.newId(),
      createdAtSeconds: Math.floor(Date.now() / 1000),
      model,
    },
    affinity: { organizationId: principal.organization.id, session: sessionOf(call.request.headers) },
    rateHeaders: (readings) => limitHeaders(operation, readings, Date.now()),
    holdAnswer: (bytes) => reserveAnswer(dependencies, call, bytes),
  };
}

/** Starts a run, which ends with the call, or at once if its caller loses the right to it. */
export function startRun(
  { standings, catalog, runs }: Dependencies,
  call: Call,
  principal: Principal,
  request: RunRequest,
): Promise<Run> {
  const standing = call.begins(standings.begin(principal, (fault) => call.end(fault)));
  const planNow = () => planOf(catalog().plans, standing.principal.organization) ?? request.plan;
  return runs.start(request, call, planNow).then((run) => call.begins(run));
}

/** The headers that every answer of an admitted request has. */
export function admittedHeaders(operation: Operation, run: Run): Record<string, string> {
  return {
    "x-service-usage-source": run.grant.source,
    ...windowHeaders(run.grant.windows),
    ...limitHeaders(operation, run.rates, Date.now()),
  };
}
