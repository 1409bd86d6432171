/** GET and DELETE /v1/responses/{id}, GET /v1/responses/{id}/input_items: the stored responses of the caller. */
import Type from "typebox";
import { maySee, type Principal } from "../../core/auth/verdict.ts";
import { reserve } from "../../core/http/bounds.ts";
import type { Call } from "../../core/http/call.ts";
import type { HttpAnswer } from "../../core/http/frame.ts";
import { json } from "../../core/http/json.ts";
import { sseHead } from "../../core/http/stream.ts";
import { Fault } from "../../core/inference/fault.ts";
import { jsonSuccess, jsonType, operation } from "../../core/operations/operation.ts";
import { path } from "../../core/operations/responses.ts";
import { wrongParameter } from "../../core/operations/serve-operation.ts";
import { ResponseObject, ResponsesStreamEvent } from "../../core/protocol/openai-responses/contract.ts";
import { cancelled, followedResponse as followedLog, toldResponse, untilSettled } from "./background.ts";
import { DeletedResponse, InputItemList } from "./contract.ts";
import type { ResponsesDependencies } from "./dependencies.ts";
import { publicItem, type StoredItem } from "./kept-items.ts";
import { lookUp, readerOf } from "./records.ts";
import { replayed } from "./replay.ts";
import type { Kept } from "./store/kept.ts";
import type { KeptResponse } from "./store/responses.ts";

const hex = "019a9e0c52c07c3fb1d2a54e8d3f6b71";
const id = `resp_${hex}`;

/** The common parts of the operations on stored responses. */
const ofStored = {
  tag: "Inference",
  idPrefix: "resp_",
  scope: "inference:create",
  params: Type.Object({
    id: Type.String({ description: "The response's id.", pattern: "^resp_[0-9a-f]{32}$", example: id }),
  }),
  faults: ["response_not_found"],
  otherFaults: true,
  faultShape: "responses",
  // Responses get their ids when they run, so no example works as written.
  examples: [],
} as const;

export const getResponse = operation({
  ...ofStored,
  operationId: "getResponse",
  method: "get",
  path: `${path}/{id}`,
  summary: "Fetch a response",
  description:
    "A stored response, as it was sent. A person reads the responses of the person's own keys and sign-ins; a key without a person reads all of the organization. A background response, as it stands; one that was created as a stream can be followed with `stream=true`, also from the event after `starting_after`.",
  query: Type.Object({
    stream: Type.Optional(
      Type.Boolean({
        description: "`true`: follows the events of a background response that was created with `stream`.",
        "x-must-be": "'true' or 'false'",
      }),
    ),
    starting_after: Type.Optional(
      Type.Integer({
        description: "The `sequence_number` of the last event that you have: the later ones are sent.",
        "x-must-be": "the 'sequence_number' of an event",
        minimum: 0,
      }),
    ),
  }),
  success: {
    description: "The response, or a stream of its events when `stream` is true.",
    headers: [],
    content: {
      [jsonType]: { schema: ResponseObject },
      "text/event-stream": {
        schema: ResponsesStreamEvent,
        grammar: "responses",
        description: "The events of the response, as when it was created, after the given one.",
      },
    },
  },
  async handle(dependencies: ResponsesDependencies, call, { principal, params, query: { stream, starting_after } }) {
    if (stream === true) return followedResponse(dependencies, call, principal, params.id, starting_after ?? -1);
    const stored = await foundResponse(dependencies, call, principal, params.id);
    if (stored) return json(200, { ...JSON.parse(stored.response), output: JSON.parse(stored.output) });
    const kept = await keptResponse(dependencies, principal, params.id);
    const current = kept && (await lookUp(() => toldResponse(dependencies, kept)));
    if (!current) throw notFound();
    return json(200, current);
  },
});

export const cancelResponse = operation({
  ...ofStored,
  operationId: "cancelResponse",
  method: "post",
  path: `${path}/{id}/cancel`,
  summary: "Cancel a background response",
  description:
    "Ends a background response that runs and that you can read. What was produced until then is charged. One that has ended stays as it is.",
  success: jsonSuccess("The response as it stands now.", { schema: ResponseObject }),
  async handle(dependencies: ResponsesDependencies, call, { principal, params }) {
    const kept = await keptResponse(dependencies, principal, params.id);
    const now = kept && (await lookUp(() => cancelled(dependencies, kept)));
    if (now) return json(200, now);
    if (!(await foundResponse(dependencies, call, principal, params.id))) throw notFound();
    throw new Fault("invalid_value", "Only a background response can be cancelled, for a day after it began.", {
      param: "id",
    });
  },
});

async function followedResponse(
  dependencies: ResponsesDependencies,
  call: Call,
  principal: Principal,
  id: string,
  after: number,
): Promise<HttpAnswer> {
  call.watchClient();
  const kept = await keptResponse(dependencies, principal, id);
  if (!kept && !(await foundResponse(dependencies, call, principal, id))) throw notFound();
  const followed = kept && (await lookUp(() => followedLog(dependencies, call, kept, after)));
  if (!followed) {
    throw new Fault(
      "unsupported_feature",
      "Only a background response that was created with 'stream': true can be streamed, for a day after it began, and while its events are kept. Fetch it without 'stream'.",
      { param: "stream" },
    );
  }
  // Nobody reads or cancels the body of an answer to HEAD.
  if (call.request.method === "HEAD") return new Response(null, { headers: sseHead({}) });
  const { follower, ...stream } = followed;
  return replayed(follower, { headers: {}, heartbeat_ms: dependencies.limits.heartbeat_ms, ...stream });
}

export const deleteResponse = operation({
  ...ofStored,
  operationId: "deleteResponse",
  method: "delete",
  path: `${path}/{id}`,
  summary: "Delete a response",
  description: "Deletes a stored response at once. Responses that continued from it can no longer be continued.",
  success: jsonSuccess("The response was deleted.", {
    schema: DeletedResponse,
    example: { id, object: "response", deleted: true },
  }),
  async handle(dependencies: ResponsesDependencies, _call, { principal, params: { id } }) {
    const { responses, kept: parts } = dependencies;
    const kept = await keptResponse(dependencies, principal, id);
    if (kept) {
      await lookUp(() => cancelled(dependencies, kept));
      // A response that has just ended may still be about to be stored.
      await lookUp(() => untilSettled(dependencies, kept));
      // The row goes last, because it names the log.
      await lookUp(() => parts.logs.remove([kept]));
      await lookUp(() => parts.answers.free(kept.requestId));
    }
    const wasStored = await lookUp(() => responses.store.remove(readerOf(principal), id));
    if (!wasStored && !kept) throw notFound();
    return json(200, { id, object: "response", deleted: true });
  },
});

const itemId = `msg_${hex}1000000`;
const itemOfThis = "the id of an item of this response";

export const listInputItems = operation({
  ...ofStored,
  operationId: "listInputItems",
  method: "get",
  path: `${path}/{id}/input_items`,
  summary: "List the input of a response",
  description:
    "The items of the request that a stored response answers; of a background response, once it has ended. Earlier items belong to the response that it continued from.",
  query: Type.Object({
    limit: Type.Integer({
      description: "The most items to return.",
      "x-must-be": "a whole number from 1 to 100",
      minimum: 1,
      maximum: 100,
      default: 20,
    }),
    order: Type.Enum(["asc", "desc"], {
      description: "`desc`: last item first.",
      "x-must-be": "'asc' or 'desc'",
      type: "string",
      default: "desc",
    }),
    after: Type.Optional(
      Type.String({
        description: "The id of an item: returns the items after it, in the requested order.",
        "x-must-be": itemOfThis,
        minLength: 1,
        example: itemId,
      }),
    ),
  }),
  success: jsonSuccess("The items.", {
    schema: InputItemList,
    example: {
      object: "list",
      data: [{ id: itemId, type: "message", role: "user", content: [{ type: "input_text", text: "Hello!" }] }],
      first_id: itemId,
      last_id: itemId,
      has_more: false,
    },
  }),
  async handle(dependencies: ResponsesDependencies, call, { principal, params, query: { limit, order, after } }) {
    const stored = await foundResponse(dependencies, call, principal, params.id);
    if (!stored) throw (await keptResponse(dependencies, principal, params.id)) ? inputNotStored() : notFound();
    const items = (JSON.parse(stored.input) as StoredItem[]).map(publicItem);
    if (order === "desc") items.reverse();
    const from = after === undefined ? 0 : items.findIndex((item) => item.id === after) + 1;
    if (after !== undefined && from === 0) throw wrongParameter("after", itemOfThis);
    const data = items.slice(from, from + limit);
    return json(200, {
      object: "list",
      data,
      first_id: data[0]?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
      has_more: from + data.length < items.length,
    });
  },
});

async function foundResponse(
  dependencies: ResponsesDependencies,
  call: Call,
  principal: Principal,
  id: string,
): Promise<KeptResponse | null> {
  if (!principal.organization.keepsContent) throw notFound();
  const stored = await lookUp(() => dependencies.responses.store.find(readerOf(principal), id));
  if (stored) reserve(dependencies, call, stored.input.length + stored.output.length + stored.response.length);
  return stored;
}

/** A background response that the caller may see, as long as its answer is kept; else null. */
async function keptResponse(
  { kept, ledger }: ResponsesDependencies,
  principal: Principal,
  id: string,
): Promise<Kept | null> {
  const { organization, person } = principal;
  if (!organization.keepsContent) return null;
  const found = await lookUp(() => kept.answers.response(organization.id, id));
  if (!found || person === null) return found;
  // A response begins after its grant, so it has a receipt, which names the person whose key made it.
  const receipt = await lookUp(() => ledger.receipt(organization.id, found.requestId));
  return receipt && maySee(principal, receipt.personId) ? found : null;
}

/**
 * The fault of listing an input that is not stored: a background response is stored, with its input, once it has ended,
 * unless it failed or was cancelled.
 */
function inputNotStored(): Fault {
  const message =
    "The input of a background response can be listed once it has ended, unless it failed or was cancelled.";
  return new Fault("response_not_found", message, { param: "id" });
}

function notFound(): Fault {
  const message =
    "There is no such response that you can read. It was sent with 'store': false, was deleted, has expired, or was made by another person or by a key of the organization, or the organization keeps no content.";
  return new Fault("response_not_found", message, { param: "id" });
}
