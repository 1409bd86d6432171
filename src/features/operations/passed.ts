/**
 * Makes an operation from a `Passing` (passing.ts): everything from reading a request to sending the answer that is
 * passed on.
 */

import type { TSchema } from "typebox";
import type { Principal } from "../../core/auth/verdict.ts";
import type { JsonBody } from "../../core/body/read.ts";
import { giveBackBody } from "../../core/http/bounds.ts";
import type { Call } from "../../core/http/call.ts";
import type { HttpAnswer } from "../../core/http/frame.ts";
import { admittedHeaders } from "../../core/operations/answer.ts";
import type { Dependencies } from "../../core/operations/dependencies.ts";
import { inferenceHeaderNames, limitHeaderNames, limitRefusalHeaderNames } from "../../core/operations/headers.ts";
import { refuseKey } from "../../core/operations/idempotency.ts";
import { startRun } from "../../core/operations/infer.ts";
import {
  type Content,
  type Example,
  inferenceFaults,
  jsonType,
  type Operation,
  operation,
  type RequestBody,
} from "../../core/operations/operation.ts";
import { inferenceBody } from "../../core/operations/prepare.ts";
import { contract } from "../../core/protocol/contract.ts";
import { isObject, type JsonObject } from "../../core/protocol/json.ts";
import { obeying, type Rules } from "../../core/protocol/rules.ts";
import { type Violation, violationFault } from "../../core/protocol/violation.ts";
import { streamedAnswer, wholeAnswer } from "./answer.ts";
import type { PassedWire, Passing } from "./passing.ts";
import { preparePassed } from "./prepare.ts";

interface Description {
  operationId: string;
  path: string;
  summary: string;
  description: string;
  request: TSchema;
  /** Whether an input may be token ids, of which a body may hold many. */
  takesIds?: boolean;
  /** A violation that the schema cannot explain, because it is in a union; null: none. */
  violation?(body: JsonObject): Violation | null;
  rules?: Rules<Record<string, unknown>>;
  returns: string;
  answer: Content;
  streamed?: Content;
  examples: readonly Example[];
}

export function passed<Wire extends PassedWire>(passing: Passing<Wire>, described: Description): Operation {
  const { operationId, path, summary, description, request, returns, answer, streamed, examples } = described;
  const checked = contract(request, { topLevel: "closed" });
  const body = inferenceBody<Wire>(request, {
    validate(body, extraParams) {
      if (checked.satisfied(body, extraParams))
        return obeying(body as Record<string, unknown>, described.rules ?? []) as unknown as Wire;
      const explained = isObject(body) ? described.violation?.(body) : null;
      throw violationFault(explained ?? checked.violation(body, extraParams));
    },
  });
  return operation({
    operationId,
    method: "post",
    path,
    tag: "Inference",
    summary,
    description,
    scope: "inference:create",
    metered: passing.operation,
    request: described.takesIds ? withRoomForIds(body) : body,
    success: {
      description: returns,
      headers: [...inferenceHeaderNames, ...limitHeaderNames],
      content: { [jsonType]: answer, ...(streamed && { "text/event-stream": streamed }) },
    },
    faults: inferenceFaults,
    otherFaults: false,
    limitRefusalHeaders: limitRefusalHeaderNames,
    examples,
    handle: (dependencies, call, input) => pass(dependencies, call, input, passing),
  });
}

/**
 * The factor by which the limit of values is raised for a body that may hold token ids. 400,000 numbers take 3 MB in
 * memory, and 400,000 of the largest other values 29 MB: less than `body_bytes_max`.
 */
const values_factor = 4;

function withRoomForIds<Body>({ schema, read }: RequestBody<Body>): RequestBody<Body> {
  return {
    schema,
    read(dependencies, call, organization) {
      const { limits } = dependencies;
      const body_values_max = values_factor * limits.body_values_max;
      return read({ ...dependencies, limits: { ...limits, body_values_max } }, call, organization);
    },
  };
}

/**
 * Serves a request whose answer is passed on. Not async: an async function would keep the parsed body in memory until
 * it ends.
 */
function pass<Wire extends PassedWire>(
  dependencies: Dependencies,
  call: Call,
  { principal, body }: { principal: Principal; body: JsonBody<Wire> },
  passing: Passing<Wire>,
): Promise<HttpAnswer> {
  refuseKey(call, passing.operation);
  const prepared = preparePassed(dependencies, call, { principal, body }, passing);
  const { identity, inputTokensExpected, request } = prepared;
  const around = passing.around(body.value, identity);
  const context = { requestId: call.requestId, identity, inputTokensEstimate: inputTokensExpected };
  const encoder = request.stream ? passing.encoder?.(body.value, context) : undefined;
  call.watchClient();
  return startRun(dependencies, call, principal, prepared).then((run) => {
    const headers = admittedHeaders(passing.operation, run);
    if (encoder) return streamedAnswer(run, { encoder, headers }, dependencies.limits, () => giveBackBody(call));
    return wholeAnswer(run, around, headers, () => giveBackBody(call));
  });
}
