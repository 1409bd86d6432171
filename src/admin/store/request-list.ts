/** Inference requests as a list, the newest first: running, ended and refused requests. */
import Type from "typebox";
import { id, instant } from "../../core/operations/fields.ts";
import { count, ModelId, Money, nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { meteredOperations, type Operation } from "../../core/store/ledger.ts";

export const listedOutcomes = ["running", "completed", "cancelled", "failed", "refused"] as const;
export type ListedOutcome = (typeof listedOutcomes)[number];

export interface RequestQuery {
  organizationId?: string | undefined;
  keyId?: string | undefined;
  /** Only requests with a key of this person. */
  personId?: string | undefined;
  teamId?: string | undefined;
  model?: string | undefined;
  operation?: Operation | undefined;
  outcome?: ListedOutcome | undefined;
  upstream?: string | undefined;
  /**
   * Only requests that were admitted or refused at `from` or later, and before `to`; reports have the same half-open
   * span.
   */
  from?: Date | undefined;
  to?: Date | undefined;
  /** Only requests that are older than the request with this id. */
  before?: string | undefined;
  limit: number;
}

/** A request in a list, as the verbs of management return it: with money instead of nanos. */
export const ShownRequest = Type.Object(
  {
    id: id("req"),
    organization_id: id("org"),
    organization: Type.String({ description: "The organization's slug." }),
    key_id: nullable(id("key")),
    key: nullable(Type.String({ description: "The key's name. Null: the key is gone." })),
    person_id: nullable(id("per")),
    person: nullable(Type.String({ description: "Name, else e-mail address. Null: a service key, or erased." })),
    team_id: nullable(id("team")),
    team: nullable(Type.String({ description: "Name. Null: no team." })),
    operation: oneOf([...meteredOperations]),
    model: nullable(ModelId),
    stream: nullable(Type.Boolean()),
    outcome: oneOf(listedOutcomes, { description: "`cancelled`: the client disconnected." }),
    error_code: nullable(Type.String()),
    stopped_by: nullable(Type.String()),
    recovered: Type.Boolean({ description: "Settled by another node than the one that ran it." }),
    upstream: nullable(Type.String({ description: "The upstream that was asked last. Null while it runs." })),
    attempts: nullable(Type.Integer({ minimum: 0, description: "How many times an engine was asked." })),
    created_at: instant("When it was admitted, or refused."),
    ended_at: nullable(instant("When it was settled, or refused. Null: it runs.")),
    first_part_ms: nullable(Type.Number()),
    input_tokens: Type.Integer({
      minimum: 0,
      description: "Without tokens read from or written to a cache. While it runs, as of its last checkpoint.",
    }),
    cached_input_tokens: count(),
    cache_write_tokens: count(),
    output_tokens: count(),
    reasoning_tokens: count(),
    cost: Type.Object({ held: Money, charged: Money, uncharged: Money }),
  },
  { $id: "ListedRequest" },
);
export type ShownRequest = Value<typeof ShownRequest>;

/**
 * A request in a list, with its costs in nanos. `held` is reserved for the request while it runs; then `charged` is 0.
 * The team is that of the key when the request was made. `model` is null if the request was refused before its model
 * was known, and `upstream` also if no engine was asked.
 */
export interface ListedRequest extends Omit<ShownRequest, "id" | "organization" | "cost"> {
  requestId: string;
  held: number;
  charged: number;
  uncharged: number;
}

export interface RequestPage {
  /**
   * At most `limit` requests. Because a page reads a bounded number of rows, there may be fewer, or none, even if more
   * requests follow.
   */
  items: ListedRequest[];
  /** The id to give as `before` for the next page. Null: this is the last page. */
  next: string | null;
}

export interface RequestList {
  listRequests(query: RequestQuery): Promise<RequestPage>;
}
