/**
 * The checks before every handler, in the decided order (docs/design/service.md, Order of checks): credential,
 * organization and scope; the key's rate of requests; parameters; body. An operation declares what it needs, and checks
 * none of it by hand.
 *
 * The parameters that an operation declares for one place (path, query or headers): a typebox object whose properties
 * describe them. Beside JSON Schema a property may have `example`, `allowEmptyValue`, and `x-must-be`, which describes
 * the valid values. A parameter with a default may be left out.
 */

import type { Static, TObject } from "typebox";
import { planOf } from "../admission/allowance.ts";
import { requireScope } from "../auth/authenticate.ts";
import { SlowRefusal } from "../auth/unknown-credentials.ts";
import { AddressNotAllowed, type Principal, Suspended } from "../auth/verdict.ts";
import { requireDescriptors } from "../http/bounds.ts";
import type { Call } from "../http/call.ts";
import { frame, type Serve } from "../http/frame.ts";
import { Fault } from "../inference/fault.ts";
import { unquoted } from "../protocol/engine-text.ts";
import { checkOf } from "../schema/check.ts";
import type { Operation as MeteredOperation } from "../store/ledger.ts";
import { ratesOverPlan } from "../store/rates.ts";
import { type Soon, starts_portion, together } from "../time/turns.ts";
import type { Dependencies } from "./dependencies.ts";
import { faultBodyOf } from "./fault-body.ts";
import type { Operation, RequiredScope } from "./operation.ts";
import { idIn, queryOf } from "./path.ts";

export function serveOperation(dependencies: Dependencies, operation: Operation): Serve {
  const { path, scope, metered, faultShape, refusedAs, request: body } = operation;
  const guarded = guardsOf(operation);
  const soon = together(starts_portion);
  const { faultBody = faultBodyOf(faultShape) } = operation;
  /**
   * Resolves when the other requests that arrived in the same poll of the event loop have been authorized too. In each
   * turn only a portion of the requests goes on, so that they do not hold up tokens: docs/design/runtime.md, Starts
   * give way. Earlier refusals do not wait: while an answer is outstanding, the runtime takes no further request of its
   * connection.
   */
  const othersArrived = () => new Promise<void>((resolve) => soon(resolve));
  const work = async (call: Call) => {
    if (scope !== null) requireDescriptors(dependencies);
    const caller = scope === null ? null : authorize(dependencies, call, scope);
    const principal = caller instanceof Promise ? await caller : caller;
    if (principal) call.holds(dependencies.bounds.memory.reservation(principal.key.id));
    if (body && principal) {
      countArrival(dependencies, operation, principal);
      call.keepOpen();
      await othersArrived();
    }
    const parameters = guarded(call.request);
    const reading = body && principal ? body.read(dependencies, call, principal.organization) : null;
    const read = reading instanceof Promise ? await reading : reading;
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

/** The fault of a limit, with a link to the request in the console, where the person who sent it can ask for more. */
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

/** The checks of the parameters. The id in the path is plain text here, because the route has checked it (path.ts). */
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

// Checks credential, organization and scope, in this order, and records the caller for the log. Throws Fault 401, 403,
// 429 or 503.

/**
 * Checks that the caller has this scope. `any`: any valid key will do, whatever its scopes. Returns a promise unless the
 * key is remembered.
 */
export function authorize(dependencies: Dependencies, call: Call, scope: NonNullable<RequiredScope>): Soon<Principal> {
  const found = dependencies.authenticate(call.request.headers, call.client);
  if (!(found instanceof Promise)) return authorized(call, found, scope);
  return found.then(
    (principal) => authorized(call, principal, scope),
    (thrown: unknown) => {
      if (thrown instanceof Suspended || thrown instanceof AddressNotAllowed) {
        call.identified({ organization: thrown.organizationId, key: thrown.keyId });
      }
      if (thrown instanceof Fault) dependencies.metrics.unauthenticated(thrown.code);
      throw thrown;
    },
  );
}

function authorized(call: Call, principal: Principal, scope: NonNullable<RequiredScope>): Principal {
  call.identified({ organization: principal.organization.id, key: principal.key.id });
  if (scope !== "any") requireScope(principal, scope);
  return principal;
}

/**
 * Records the refusal of an inference request after its caller was authenticated: in the metrics, and in a receipt
 * (docs/design/usage.md, Receipts), without waiting for it. Once a request is admitted, the ledger has its record
 * instead.
 */
function refused(dependencies: Dependencies, call: Call, operation: MeteredOperation, fault: Fault): void {
  const { code, status, message } = fault;
  const { limit } = fault.details;
  const { source, organization, key, model, stream } = call.notes;
  if (source !== undefined || organization === undefined || key === undefined) return;
  dependencies.metrics.decision("refused", code);
  // A failure because of a defect or an outage is not a refusal; one for want of room, or in a drain, is.
  if (status >= 500 && code !== "overloaded" && code !== "draining") return;
  dependencies.refused.add({
    requestId: call.requestId,
    organizationId: organization,
    keyId: key,
    operation,
    model: model ?? null,
    stream: stream ?? null,
    errorCode: code,
    // Only the refusal of a body can quote the body.
    message: status === 400 ? unquoted(message) : message,
    ...(limit && { limit }),
  });
}

interface Parameter {
  type?: string;
  default?: unknown;
  description?: string;
  example?: string;
  allowEmptyValue?: boolean;
  "x-must-be"?: string;
}

export function parametersOf(schema: TObject): [name: string, parameter: Parameter, isRequired: boolean][] {
  const required: readonly string[] = schema.required ?? [];
  return Object.entries(schema.properties as Record<string, Parameter>).map(([name, parameter]) => [
    name,
    parameter,
    required.includes(name) && !("default" in parameter),
  ]);
}

/**
 * Returns the values of the parameters by name, from the text that `textOf` finds for each. Throws the Fault of the
 * first that is missing or wrong.
 */
type Guard<Schema extends TObject> = (textOf: (name: string) => string | null) => Static<Schema>;

export function guard<Schema extends TObject>(schema: Schema): Guard<Schema> {
  const checked = parametersOf(schema).map(([name, parameter, isRequired]) => ({
    name,
    parameter,
    isRequired,
    check: checkOf(schema.properties[name]!),
  }));
  return (textOf) => {
    const values: Record<string, unknown> = {};
    for (const { name, parameter, isRequired, check } of checked) {
      const text = textOf(name);
      if (text !== null) {
        const value = typedAs(text, parameter.type);
        if (!check(value))
          throw wrongParameter(name, parameter["x-must-be"] ?? "the value that the contract describes");
        values[name] = value;
      } else if (isRequired) {
        throw new Fault("missing_field", `'${name}' is missing.`, { param: name });
      } else if ("default" in parameter) {
        values[name] = parameter.default;
      }
    }
    return values as Static<Schema>;
  };
}

export function wrongParameter(name: string, mustBe: string): Fault {
  return new Fault("invalid_value", `'${name}' must be ${mustBe}.`, { param: name });
}

function typedAs(text: string, type: string | undefined): unknown {
  if (type === "integer") return integerOf(text);
  if (type === "boolean") return booleans.get(text) ?? text;
  return text;
}

const booleans = new Map([
  ["true", true],
  ["false", false],
]);

/**
 * The integer in a text of digits: no sign but a minus, no leading zero, no exponent. Any other text stays text, which
 * the schema refuses.
 */
function integerOf(text: string): number | string {
  return /^(0|-?[1-9]\d*)$/.test(text) ? Number(text) : text;
}
