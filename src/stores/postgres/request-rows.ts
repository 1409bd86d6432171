/** Turns rows of holds, records and refusals into listed requests. */

import type { ListedOutcome, ListedRequest } from "../../admin/store/request-list.ts";
import { idOf } from "../../core/store/ids.ts";
import type { Operation, StoppingLimit } from "../../core/store/ledger.ts";
import { type LateEntry, tokensWithLate } from "./ledger-late.ts";

/**
 * The columns of the tables of holds, records and refusals, each of which has some of them; the person of the key; and
 * the names of key, person and team.
 */
export interface RequestRow {
  request_id: string;
  organization_id: string;
  key_id: string | null;
  key_name: string | null;
  person_id: string | null;
  person_name: string | null;
  team_name: string | null;
  team_id: string | null;
  operation: string;
  model: string | null;
  stream: boolean | null;
  outcome: string;
  error_code: string | null;
  stopped_by: StoppingLimit | null;
  recovered: boolean;
  upstream: string | null;
  attempts: number | null;
  first_part_ms: number | null;
  admitted_at: Date;
  ended_at: Date;
  refused_at: Date;
  input_tokens: number;
  cached_input_tokens: number;
  cache_write_tokens: number;
  output_tokens: number;
  produced_tokens: number;
  reasoning_tokens: number;
  held: number;
  charged: number;
  uncharged: number;
  nanos: number;
}

export function listedRecord(row: RequestRow): ListedRequest {
  return {
    ...identity(row),
    teamId: row.team_id === null ? null : idOf(row.team_id, "team_"),
    outcome: row.outcome as ListedOutcome,
    errorCode: row.error_code,
    stoppedBy: row.stopped_by && "usage_window",
    recovered: row.recovered,
    upstream: row.upstream,
    attempts: row.attempts,
    firstPart_ms: row.first_part_ms,
    createdAt: row.admitted_at,
    endedAt: row.ended_at,
    ...tokens(row, row.output_tokens),
    held: row.held,
    charged: row.charged,
    uncharged: row.uncharged,
  };
}

export function withLate(request: ListedRequest, late: LateEntry): ListedRequest {
  return {
    ...request,
    ...tokensWithLate(request, late),
    charged: request.charged + late.charged,
    uncharged: request.uncharged + late.uncharged,
  };
}

/** A running request. Its tokens are those of its last checkpoint. */
export function listedHold(row: RequestRow): ListedRequest {
  return {
    ...identity(row),
    teamId: row.team_id === null ? null : idOf(row.team_id, "team_"),
    outcome: "running",
    ...unsettled,
    createdAt: row.admitted_at,
    endedAt: null,
    ...tokens(row, row.produced_tokens),
    held: row.nanos,
  };
}

export function listedRefusal(row: RequestRow): ListedRequest {
  return {
    ...identity(row),
    teamId: null,
    outcome: "refused",
    ...unsettled,
    errorCode: row.error_code,
    createdAt: row.refused_at,
    endedAt: row.refused_at,
    inputTokens: 0,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 0,
    reasoningTokens: 0,
    held: 0,
  };
}

/** The fields of a request that was not settled. */
const unsettled = {
  errorCode: null,
  stoppedBy: null,
  recovered: false,
  upstream: null,
  attempts: null,
  firstPart_ms: null,
  charged: 0,
  uncharged: 0,
};

function identity(row: RequestRow) {
  return {
    requestId: idOf(row.request_id, "req_"),
    organizationId: idOf(row.organization_id, "org_"),
    keyId: row.key_id === null ? null : idOf(row.key_id, "key_"),
    key: row.key_name,
    personId: row.person_id === null ? null : idOf(row.person_id, "per_"),
    person: row.person_name,
    team: row.team_name,
    operation: row.operation as Operation,
    model: row.model,
    stream: row.stream,
  };
}

function tokens(row: RequestRow, outputTokens: number) {
  return {
    inputTokens: row.input_tokens,
    cachedInputTokens: row.cached_input_tokens,
    cacheWriteTokens: row.cache_write_tokens,
    outputTokens,
    reasoningTokens: row.reasoning_tokens,
  };
}
