/**
 * GET and DELETE /v1/responses/{id}, GET /v1/responses/{id}/input_items: the stored responses of the calling
 * organization.
 */
import Type from "typebox";
import type { Principal } from "../../auth/verdict.ts";
import type { Call } from "../../http/call.ts";
import { json } from "../../http/json.ts";
import { reserve } from "../../http/shed.ts";
import { Fault } from "../../inference/fault.ts";
import { DeletedResponse, InputItemList, ResponseObject } from "../../protocol/openai-responses/contract.ts";
import { publicItem, type StoredItem } from "../../protocol/openai-responses/references.ts";
import type { KeptResponse } from "../../store/responses.ts";
import type { Dependencies } from "../dependencies.ts";
import { credentialFaults } from "../openapi/faults.ts";
import { operation } from "../operation.ts";
import { wrongParameter } from "../parameters.ts";
import { queryOf } from "../path.ts";
import { lookUp } from "../stored-responses.ts";
import { jsonType } from "./examples.ts";
import { completed, hex, id, path } from "./responses-examples.ts";

/** The common parts of the three operations. */
const ofStored = {
  tag: "Inference",
  idPrefix: "resp_",
  scope: "inference:create",
  params: Type.Object({
    id: Type.String({ description: "The response's id.", pattern: "^resp_[0-9a-f]{32}$", example: id }),
  }),
  faults: [...credentialFaults, "response_not_found"],
  otherFaults: true,
  faultShape: "responses",
  // Responses make their own ids, so no example works as written.
  examples: [],
} as const;

export const getResponse = operation({
  ...ofStored,
  operationId: "getResponse",
  method: "get",
  path: `${path}/{id}`,
  summary: "Fetch a response",
  description: "A stored response of your organization, as it was sent.",
  success: {
    description: "The response.",
    headers: [],
    content: { [jsonType]: { schema: ResponseObject, example: completed } },
  },
  async handle(dependencies, call, { principal, params }) {
    // Clients may add any query parameter, but this one asks for something that is not served.
    if (queryOf(call.request).get("stream") === "true") {
      throw new Fault("unsupported_feature", "A stored response cannot be streamed. Fetch it without 'stream'.", {
        param: "stream",
      });
    }
    const { response, output } = await storedResponse(dependencies, call, principal, params.id);
    return json(200, { ...JSON.parse(response), output: JSON.parse(output) });
  },
});

export const deleteResponse = operation({
  ...ofStored,
  operationId: "deleteResponse",
  method: "delete",
  path: `${path}/{id}`,
  summary: "Delete a response",
  description: "Deletes a stored response at once. Responses that continued from it can no longer be continued.",
  success: {
    description: "The response was deleted.",
    headers: [],
    content: { [jsonType]: { schema: DeletedResponse, example: { id, object: "response", deleted: true } } },
  },
  async handle({ responses }, _call, { principal, params: { id } }) {
    if (!(await lookUp(() => responses.store.remove(principal.organization.id, id)))) throw notFound();
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
    "The items of the request that a stored response answers. Earlier items belong to the response that it continued from.",
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
  success: {
    description: "The items.",
    headers: [],
    content: {
      [jsonType]: {
        schema: InputItemList,
        example: {
          object: "list",
          data: [{ id: itemId, type: "message", role: "user", content: [{ type: "input_text", text: "Hello!" }] }],
          first_id: itemId,
          last_id: itemId,
          has_more: false,
        },
      },
    },
  },
  async handle(dependencies, call, { principal, params, query: { limit, order, after } }) {
    const { input } = await storedResponse(dependencies, call, principal, params.id);
    const items = (JSON.parse(input) as StoredItem[]).map(publicItem);
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

async function storedResponse(
  dependencies: Dependencies,
  call: Call,
  { organization }: Principal,
  id: string,
): Promise<KeptResponse> {
  if (!organization.keepsContent) throw notFound();
  const stored = await lookUp(() => dependencies.responses.store.find(organization.id, id));
  if (!stored) throw notFound();
  reserve(dependencies, call, stored.input.length + stored.output.length + stored.response.length);
  return stored;
}

function notFound(): Fault {
  const message =
    "There is no such response in this organization. It was sent with 'store': false, was deleted, or has expired, or the organization keeps no content.";
  return new Fault("response_not_found", message, { param: "id" });
}
