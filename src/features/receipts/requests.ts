/** GET /v1/service/requests/{id}: the usage and cost of one request of the organization. It names no upstream. */
import Type from "typebox";
import { maySee, type Principal } from "../../core/auth/verdict.ts";
import { json } from "../../core/http/json.ts";
import { Fault } from "../../core/inference/fault.ts";
import type { Dependencies } from "../../core/operations/dependencies.ts";
import { jsonSuccess, operation } from "../../core/operations/operation.ts";
import { uuidOf } from "../../core/store/ids.ts";
import { receiptShown, refusedShown } from "./receipt.ts";
import { RequestReceipt } from "./receipt-shape.ts";

const dollars = (amount: string) => ({ amount, currency: "USD" });
const window = { usage_percent_before: 12.5, usage_percent_after: 12.92, reset_at: "2026-11-21T08:00:00.000Z" };
const example = {
  object: "service.request",
  id: "req_01a1fd39bc7c7647888383851a8aba9d",
  operation: "chat.completions",
  model: "acme/writer-1",
  stream: true,
  key_id: "key_01a1fd39bc7c7647888383851a8aba9d",
  person_id: null,
  created_at: "2026-11-21T03:00:00.000Z",
  ended_at: "2026-11-21T03:00:04.120Z",
  outcome: "completed",
  stopped_by: null,
  error_code: null,
  limited_by: null,
  limited_models: null,
  attempts: 1,
  continued: false,
  recovered: false,
  settled_late_at: null,
  detached: false,
  replay_of: null,
  input_count: null,
  usage: {
    input_tokens: 812,
    cached_input_tokens: 1024,
    cache_write_tokens: 0,
    output_tokens: 305,
    reasoning_tokens: 120,
    searches: 0,
    source: "reported",
  },
  prices: {
    input: dollars("0.100000"),
    cached_input: dollars("0.010000"),
    cache_write: dollars("0.125000"),
    output: dollars("0.400000"),
  },
  cost: { held: dollars("0.001720000"), charged: dollars("0.000213440"), uncharged: dollars("0.000000000") },
  billing_source: "plan",
  windows: { session: window, week: window, month: window },
};

export const getRequest = operation({
  operationId: "getRequest",
  method: "get",
  path: "/v1/service/requests/{id}",
  idPrefix: "req_",
  tag: "Usage",
  summary: "Read a receipt",
  description:
    "What one inference request used and cost. A person reads the receipts of the person's own keys and sign-ins; a key without a person reads all of the organization. You can also read it while the request runs. Refused requests have receipts too, at most ten per second for each organization. Receipts are kept for at least 30 days.",
  scope: "usage:read",
  params: Type.Object({
    id: Type.String({
      description: "The request's id, from the `x-service-request-id` header of its response.",
      pattern: "^req_[0-9a-f]{32}$",
      example: example.id,
    }),
  }),
  success: jsonSuccess("The receipt.", {
    schema: RequestReceipt,
    example,
  }),
  faults: ["request_not_found"],
  otherFaults: true,
  // Requests get their ids when they run, so no example works as written.
  examples: [],
  async handle(dependencies, _call, { principal, params: { id } }) {
    const receipt = uuidOf(id, "req_") ? await receiptOf(dependencies, principal, id) : null;
    if (receipt) return json(200, receipt);
    throw new Fault(
      "request_not_found",
      "There is no such request whose receipt you can read. Only authenticated inference requests have receipts, for at least 30 days, and those of another person or a key of the organization are not shown to you.",
      { param: "id" },
    );
  },
});

async function receiptOf(dependencies: Dependencies, principal: Principal, id: string): Promise<RequestReceipt | null> {
  const { id: organizationId } = principal.organization;
  const { currency } = dependencies;
  const receipt = await dependencies.ledger.receipt(organizationId, id);
  if (receipt) return maySee(principal, receipt.personId) ? receiptShown(receipt, currency) : null;
  const refused = await dependencies.refused.find(id);
  const isOwn = refused?.organizationId === organizationId && maySee(principal, refused.personId);
  return isOwn ? refusedShown(refused, currency) : null;
}
