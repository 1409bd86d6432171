/**
 * SQL that turns a row `r` of holds, records or refusals into a listed request. `k` is the row's key, `p` the key's person,
 * and `t` the team.
 */
import type { ListedRequest } from "../../admin/store/request-list.ts";
import { type LateEntry, tokensWithLate } from "./ledger-late.ts";
import { shownId } from "./rows.ts";

const identity = `
  ${shownId("r.request_id", "req_")} as "requestId", ${shownId("r.organization_id", "org_")} as "organizationId",
  ${shownId("r.key_id", "key_")} as "keyId", k.name as key, ${shownId("k.person_id", "per_")} as "personId",
  coalesce(p.name, p.email) as person, t.name as team, r.operation, r.model, r.stream`;

const team = `${shownId("r.team_id", "team_")} as "teamId"`;

/** The columns of a request that was not settled. */
const unsettled = (errorCode: string) => `
  ${errorCode} as "errorCode", null as "stoppedBy", false as recovered, null as upstream, null::integer as attempts,
  null::bigint as "firstPart_ms", 0 as charged, 0 as uncharged`;

const tokens = (outputTokens: string) => `
  r.input_tokens as "inputTokens", r.cached_input_tokens as "cachedInputTokens",
  r.cache_write_tokens as "cacheWriteTokens", ${outputTokens} as "outputTokens", r.reasoning_tokens as "reasoningTokens"`;

export const recordListed = `
  ${identity}, ${team}, r.outcome, r.error_code as "errorCode",
  case when r.stopped_by is not null then 'usage_window' end as "stoppedBy", r.recovered, r.upstream, r.attempts,
  r.first_part_ms as "firstPart_ms", r.admitted_at as "createdAt", r.ended_at as "endedAt", ${tokens("r.output_tokens")},
  r.held, r.charged, r.uncharged`;

/** A running request. Its tokens are those of its last checkpoint. */
export const holdListed = `
  ${identity}, ${team}, 'running' as outcome, ${unsettled("null")}, r.admitted_at as "createdAt",
  null::timestamptz as "endedAt", ${tokens("r.produced_tokens")}, r.nanos as held`;

export const refusalListed = `
  ${identity}, null as "teamId", 'refused' as outcome, ${unsettled("r.error_code")}, r.refused_at as "createdAt",
  r.refused_at as "endedAt", 0 as "inputTokens", 0 as "cachedInputTokens", 0 as "cacheWriteTokens", 0 as "outputTokens",
  0 as "reasoningTokens", 0 as held`;

export function withLate(request: ListedRequest, late: LateEntry): ListedRequest {
  return {
    ...request,
    ...tokensWithLate(request, late),
    charged: request.charged + late.charged,
    uncharged: request.uncharged + late.uncharged,
  };
}
