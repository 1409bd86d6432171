/** POST /v1/responses: the same spine as chat completions, in the words of Responses; and what is kept of its answers. */
import { Fault } from "../../inference/fault.ts";
import { openaiResponsesCaller } from "../../protocol/openai-responses/codec.ts";
import type { ResponseObject, ResponsesRequest } from "../../protocol/openai-responses/contract.ts";
import { encodeFault } from "../../protocol/openai-responses/fault.ts";
import { type StoredItem, shownItem } from "../../protocol/openai-responses/references.ts";
import { validateResponsesRequest } from "../../protocol/openai-responses/validate.ts";
import type { KeptResponse } from "../../store/responses.ts";
import { admitted } from "../admitted.ts";
import type { Call } from "../call.ts";
import { methodNotAllowed, type Route } from "../door.ts";
import type { House } from "../house.ts";
import { type Adapter, infer } from "../infer.ts";
import { json } from "../json.ts";
import { keeper, resolved, stored } from "../kept.ts";
import { idIn } from "../path-id.ts";

const path = "/v1/responses";
const inputItems = "/input_items";

export function responsesRoutes(house: House): Route[] {
  const adapter: Adapter<ResponsesRequest, ResponseObject> = {
    operation: "responses",
    idPrefix: "resp_",
    codec: openaiResponsesCaller,
    validate: validateResponsesRequest,
    resolve: (wire, organizationId) => resolved(house, wire, organizationId),
    keeper: (wire, organizationId) => keeper(house, wire, organizationId),
  };
  return [
    {
      path,
      methods: { POST: (call) => infer(house, call, adapter) },
      otherwise: upgradeOrNothing,
      faultBody: encodeFault,
    },
    {
      path: `${path}/{id}`,
      methods: { GET: (call) => retrieve(house, call), DELETE: (call) => remove(house, call) },
      faultBody: encodeFault,
    },
    { path: `${path}/{id}${inputItems}`, methods: { GET: (call) => listInput(house, call) }, faultBody: encodeFault },
  ];
}

/** Codex asks for a WebSocket where it is told that there are any; a plain no sends it back to POST. */
function upgradeOrNothing({ request }: Call): never {
  if (request.method === "GET" && /\bwebsocket\b/i.test(request.headers.get("upgrade") ?? "")) {
    throw new Fault(
      "upgrade_not_supported",
      "This path does not speak WebSocket. POST the request, with 'stream': true.",
    );
  }
  throw methodNotAllowed(request.method, "POST");
}

async function retrieve(house: House, call: Call): Promise<Response> {
  const { id, organizationId } = await asked(house, call);
  const query = new URL(call.request.url).searchParams;
  if (query.get("stream") === "true") {
    throw new Fault("unsupported_feature", "'stream' is not served for a stored response. Fetch it whole.", {
      param: "stream",
    });
  }
  const { response, output } = await keptOf(house, organizationId, id);
  return json(200, { ...JSON.parse(response), output: JSON.parse(output) });
}

async function remove(house: House, call: Call): Promise<Response> {
  const { id, organizationId } = await asked(house, call);
  if (!(await stored(() => house.responses.store.remove(organizationId, id)))) throw notFound();
  return json(200, { id, object: "response", deleted: true });
}

async function listInput(house: House, call: Call): Promise<Response> {
  const { id, organizationId } = await asked(house, call, inputItems);
  const page = pageOf(new URL(call.request.url).searchParams);
  const { input } = await keptOf(house, organizationId, id);
  const items = (JSON.parse(input) as StoredItem[]).map(shownItem);
  if (page.order === "desc") items.reverse();
  const from = page.after === null ? 0 : items.findIndex((item) => item.id === page.after) + 1;
  if (page.after !== null && from === 0) throw wrong("after", "the id of an item of this response");
  const data = items.slice(from, from + page.limit);
  return json(200, {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: from + data.length < items.length,
  });
}

/** Who asks for which response. */
async function asked(house: House, call: Call, suffix = ""): Promise<{ id: string; organizationId: string }> {
  const { organization } = await admitted(house, call, "inference:create");
  return { id: idIn(call, `${path}/`, suffix), organizationId: organization.id };
}

async function keptOf(house: House, organizationId: string, id: string): Promise<KeptResponse> {
  const kept = await stored(() => house.responses.store.find(organizationId, id));
  if (!kept) throw notFound();
  return kept;
}

function notFound(): Fault {
  const message =
    "There is no such response in this organization. It was sent with 'store': false, was deleted, or is kept no longer.";
  return new Fault("response_not_found", message, { param: "id" });
}

function pageOf(query: URLSearchParams) {
  const limit = query.get("limit") ?? "20";
  const order = query.get("order") ?? "desc";
  if (!/^[1-9]\d{0,2}$/.test(limit) || Number(limit) > 100) throw wrong("limit", "a whole number from 1 to 100");
  if (order !== "asc" && order !== "desc") throw wrong("order", "'asc' or 'desc'");
  return { limit: Number(limit), order, after: query.get("after") };
}

function wrong(param: string, mustBe: string): Fault {
  return new Fault("invalid_value", `'${param}' must be ${mustBe}.`, { param });
}
