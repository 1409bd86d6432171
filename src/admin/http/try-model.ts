/**
 * Tries a model: runs one inference request for somebody who administers a key, as that key, with its limits and a
 * receipt. So nobody needs the key's secret. This operation is not a verb, because its response is the API's response.
 */

import Type from "typebox";
import { planOf } from "../../core/admission/allowance.ts";
import { requireScope } from "../../core/auth/authenticate.ts";
import type { Principal } from "../../core/auth/verdict.ts";
import type { Call } from "../../core/http/call.ts";
import type { Serve } from "../../core/http/frame.ts";
import { Fault } from "../../core/inference/fault.ts";
import { chatAdapter, createChatCompletion } from "../../core/operations/chat.ts";
import type { Dependencies } from "../../core/operations/dependencies.ts";
import { infer } from "../../core/operations/infer.ts";
import { jsonType, type Operation, operation } from "../../core/operations/operation.ts";
import { queryOf } from "../../core/operations/path.ts";
import { inferenceBody } from "../../core/operations/prepare.ts";
import { serveOperation } from "../../core/operations/serve-operation.ts";
import { ChatCompletionRequest } from "../../core/protocol/openai-chat/contract.ts";
import { validateChatRequest } from "../../core/protocol/openai-chat/validate.ts";
import type { Actor } from "../../core/store/directory.ts";
import { ratesOverPlan } from "../../core/store/rates.ts";
import { createCompletion } from "../../features/operations/completions.ts";
import { createEmbeddings } from "../../features/operations/embeddings.ts";
import { createRerank } from "../../features/operations/rerank.ts";
import { type CallerRole, localCaller } from "../management/caller.ts";
import { keepers } from "../management/shapes.ts";
import { admitted, checkNames, type ManagementEntrance, managementPath, requireTls, type Trying } from "./gate.ts";

export const tryName = "tryModel";
export const tryPath = `${managementPath}/try`;
export const tryRoles: readonly [CallerRole, ...CallerRole[]] = keepers;

/** The operations besides chat with which models can be tried, by their paths. */
const otherOperations = new Map([createEmbeddings, createRerank, createCompletion].map((one) => [one.path, one]));

/** The query string of a trial request: the key's ID, and the path of the API unless it is the path of chat. */
export function triedQuery(keyId: string, path: string): string {
  return String(new URLSearchParams({ key: keyId, ...(path !== createChatCompletion.path && { path }) }));
}

const summary = "Try a model";
const body = inferenceBody(ChatCompletionRequest, { validate: validateChatRequest });

export function tryModel(entrance: ManagementEntrance, trying: Trying): Operation {
  return operation({
    operationId: tryName,
    method: "post",
    path: tryPath,
    tag: "Requests",
    summary,
    description:
      "Runs one chat completion, or a request for the `path` `/v1/embeddings`, `/v1/rerank` or `/v1/completions`, as the key that `key` names, which the caller may administer.",
    scope: null,
    metered: chatAdapter.operation,
    faults: [...createChatCompletion.faults, "missing_role", "resource_not_found"],
    otherFaults: true,
    examples: [],
    success: {
      description: "The answer, as the API gives it.",
      headers: [],
      content: { "text/event-stream": { schema: Type.String() }, [jsonType]: { schema: Type.Unknown() } },
    },
    async handle(dependencies, call) {
      requireTls(entrance, call);
      const caller = await admitted(entrance, { roles: tryRoles, summary }, call);
      const query = queryOf(call.request);
      checkNames(query, ["key", "path"]);
      const other = operationAt(query.get("path"));
      const principal = await trying.principalFor(caller, query.get("key"), call.client);
      call.identified({ ...caller.noted, organization: principal.organization.id, key: principal.key.id });
      admit(dependencies, call, principal);
      if (other?.request) {
        const read = await other.request.read(dependencies, call, principal.organization);
        return other.handle(dependencies, call, { principal, params: {}, query: {}, headers: {}, body: read });
      }
      const read = await body.read(dependencies, call, principal.organization);
      return infer(dependencies, call, { principal, body: read }, chatAdapter);
    },
  });
}

/**
 * Makes the handler that tries models for a user on the node's own machine, whom the file permissions of the socket
 * have authenticated. Null: nobody can try a model.
 */
export function tryingHere(dependencies: Dependencies, entrance: ManagementEntrance): ((actor: Actor) => Serve) | null {
  const { trying } = entrance;
  if (!trying) return null;
  return (actor) => {
    const authenticate = async () => localCaller(actor);
    return serveOperation(dependencies, tryModel({ ...entrance, authenticate }, trying));
  };
}

/** The operation at this path; null for a chat completion, which is also meant by a `path` of null. */
function operationAt(path: string | null): Operation | null {
  if (path === null || path === createChatCompletion.path) return null;
  const known = otherOperations.get(path);
  if (known) return known;
  const paths = [createChatCompletion.path, ...otherOperations.keys()].map((one) => `'${one}'`).join(", ");
  throw new Fault("invalid_value", `'path' must be one of ${paths}.`, { param: "path" });
}

/** Makes the checks that a request with the key's secret would have to pass (serve-operation.ts). */
function admit({ arrivals, bounds, catalog }: Dependencies, call: Call, principal: Principal): void {
  requireScope(principal, "inference:create");
  call.holds(bounds.memory.reservation(principal.key.id));
  const plan = planOf(catalog().plans, principal.organization);
  arrivals.take(principal.key.id, "inference", plan ? ratesOverPlan(plan, principal.overPlan) : undefined);
  call.keepOpen();
}
