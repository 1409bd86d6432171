/**
 * The wire shape of a receipt: the cost of one request, and the windows to which it was charged. Rules:
 * docs/design/usage.md, Receipts.
 */
import Type from "typebox";
import { ModelPrices } from "../../core/operations/shapes.ts";
import { count, instant, ModelId, Money, nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import { meteredOperations } from "../../core/store/ledger.ts";

const percent = () => Type.Number({ minimum: 0, maximum: 100 });

export const ReceiptWindow = Type.Object(
  {
    usage_percent_before: percent(),
    usage_percent_after: nullable(percent()),
    reset_at: instant("When the window ends."),
  },
  {
    $id: "ReceiptWindow",
    description: "A window that the request was admitted in. `after` is null while the request runs.",
  },
);

export const RequestReceipt = Type.Object(
  {
    object: Type.Literal("service.request"),
    id: Type.String({ pattern: "^req_[0-9a-f]{32}$" }),
    operation: Type.Enum([...meteredOperations], { type: "string" }),
    model: nullable(ModelId),
    stream: nullable(Type.Boolean()),
    key_id: Type.String({ pattern: "^key_[0-9a-f]{32}$" }),
    person_id: nullable(
      Type.String({
        pattern: "^per_[0-9a-f]{32}$",
        description: "The person whose key it is. Null: the key is of nobody.",
      }),
    ),
    created_at: instant("When it was admitted, or refused."),
    ended_at: nullable(instant("When it was settled, or refused.")),
    outcome: Type.Enum(["running", "completed", "cancelled", "failed", "refused"], {
      type: "string",
      description: "`cancelled`: the client disconnected.",
    }),
    stopped_by: nullable(Type.Literal("usage_window")),
    error_code: nullable(Type.String()),
    limited_by: nullable(
      oneOf(["organization", "team", "person", "key"], {
        description: "Whose limit refused the request, or stopped its answer.",
      }),
    ),
    limited_models: nullable(
      Type.String({ description: "The models that the limit is for: a model, or `prefix/*`. Null: all of them." }),
    ),
    attempts: nullable(
      Type.Integer({
        minimum: 0,
        description: "How many times an engine was asked. Null while it runs, and where none was.",
      }),
    ),
    continued: Type.Boolean({
      description: "An engine failed in the middle of the answer, and another went on with it.",
    }),
    recovered: Type.Boolean({
      description:
        "Settled by another node: a stream at its last checkpoint, an answer that was not streamed, or had an `idempotency-key`, at 0.",
    }),
    settled_late_at: nullable(
      instant(
        "When the node that ran it, which had been cut off, booked what was delivered beyond that checkpoint. `usage` and `cost` are the sums.",
      ),
    ),
    detached: Type.Boolean({
      description: "The client left, and the answer went on, because an `idempotency-key` had come with the request.",
    }),
    replay_of: nullable(
      Type.String({
        pattern: "^req_[0-9a-f]{32}$",
        description: "The request whose answer was repeated. This one cost nothing.",
      }),
    ),
    input_count: nullable(
      Type.Integer({
        minimum: 1,
        description: "The texts or lists of token ids of an embedding, or the documents that were ranked; else null.",
      }),
    ),
    usage: Type.Object({
      input_tokens: Type.Integer({ minimum: 0, description: "Without tokens read from or written to a cache." }),
      cached_input_tokens: count(),
      cache_write_tokens: count(),
      output_tokens: count(),
      reasoning_tokens: count(),
      searches: Type.Integer({ minimum: 0, description: "A ranking of up to 100 documents is one." }),
      source: Type.Enum(["reported", "counted", "estimated"], { type: "string" }),
    }),
    prices: nullable(ModelPrices),
    cost: Type.Object(
      { held: Money, charged: Money, uncharged: Money },
      {
        description:
          "By the prices at admission. `held` while it ran; `uncharged`: used, but no limit had room for it.",
      },
    ),
    billing_source: nullable(Type.Enum(["plan", "extra"], { type: "string" })),
    windows: nullable(
      Type.Object(
        { session: ReceiptWindow, week: ReceiptWindow, month: ReceiptWindow },
        {
          description: "Null if the request was refused, or abandoned before it was admitted.",
        },
      ),
    ),
  },
  {
    $id: "RequestReceipt",
    description:
      "For a refused request, `prices`, `billing_source` and `windows` are null; for a replay, too. `model` and `stream` are also null if the body was refused before they were read.",
  },
);
export type RequestReceipt = Type.Static<typeof RequestReceipt>;
