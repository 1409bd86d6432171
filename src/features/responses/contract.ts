/** The wire shapes of stored responses, and of a compacted conversation. */
import Type from "typebox";
import { itemId, OutputCompaction, otherItems, ResponsesUsage } from "../../core/protocol/openai-responses/contract.ts";
import { nullable, oneOf, openObject, text, unixSeconds } from "../../core/protocol/shapes/contract.ts";

/**
 * Whether items of this type are stored. References are not: the items that they refer to are stored in their place.
 */
const isKept = (type: string) => type !== "item_reference";
const KeptItem = openObject(
  {
    $id: "ResponsesKeptItem",
    description:
      "A `ResponsesInputItem` as it was sent, with its id. The content of a message is always a list of parts.",
  },
  { id: text, type: oneOf(["message", ...otherItems.map(({ properties }) => properties.type.const).filter(isKept)]) },
);

export const InputItemList = Type.Object(
  {
    object: Type.Literal("list"),
    data: Type.Array(KeptItem),
    first_id: nullable(text),
    last_id: nullable(text),
    has_more: Type.Boolean({ description: "Whether there are more items, in the requested order." }),
  },
  { $id: "ResponsesInputItemList" },
);

export const DeletedResponse = Type.Object(
  { id: text, object: Type.Literal("response"), deleted: Type.Literal(true) },
  { $id: "DeletedResponse" },
);

/** A message of the user that is returned unchanged. */
const RetainedMessage = Type.Object(
  {
    id: itemId("msg"),
    type: Type.Literal("message"),
    status: Type.Literal("completed"),
    role: Type.Literal("user"),
    content: Type.Array(openObject({}, { type: text })),
  },
  { $id: "ResponsesRetainedMessage" },
);
export type RetainedMessage = Type.Static<typeof RetainedMessage>;

export const CompactedResponse = Type.Object(
  {
    id: Type.String({ pattern: `^resp_[0-9a-f]{32}$` }),
    object: Type.Literal("response.compaction"),
    created_at: unixSeconds,
    output: Type.Array(Type.Union([RetainedMessage, OutputCompaction]), {
      description:
        "The newest messages of the user, then the summary. Send them as `input` in place of the conversation, with what is new behind them.",
    }),
    usage: ResponsesUsage,
  },
  { $id: "CompactedResponse" },
);
export type CompactedResponse = Type.Static<typeof CompactedResponse>;
