/**
 * Late settlements. When the node of a recovered request is back, a late settlement charges what the request's record
 * lacks, with an entry of its own (docs/design/metering.md, Rule 5: Settle exactly once).
 */
import type { Usage, UsageSource } from "../../core/inference/usage.ts";
import { bare, idOf } from "../../core/store/ids.ts";
import type { Command, LedgerAnswer } from "../../core/store/ledger.ts";
import type { Querying } from "./database.ts";
import { encodeBatch } from "./ledger-batch.ts";
import { shownId } from "./rows.ts";

interface LateRow {
  position: number;
  entry_id: string;
  charged: number;
  uncharged: number;
}

/**
 * Charges the late settlements of a batch in a second statement, which commits durably by itself. Returns the batch's
 * answers. If it fails, the batch is sent again, and finds the records again.
 */
export async function settledLate(
  db: Querying,
  commands: readonly Command[],
  answers: LedgerAnswer[],
): Promise<LedgerAnswer[]> {
  const positions = [...commands.keys()].filter((at) => mayBeLate(commands[at]!, answers[at]!));
  if (positions.length === 0) return answers;
  const [organizations, , , , settles] = encodeBatch(positions.map((at) => commands[at]!));
  const rows = await db.query<LateRow>(settling, [organizations, settles]);
  const booked = answers.slice();
  for (const { position, entry_id, charged, uncharged } of rows)
    booked[positions[position]!] = { answer: "late", entryId: idOf(entry_id, "req_"), charged, uncharged };
  return booked;
}

const settling = "select * from usage_settle_late($1::uuid[], $2::usage_settle_command[])";

/**
 * Whether the settlement may be a late one: the ledger must have a record of its request already. Without nanos there
 * is nothing to charge late; and a repeatable request costs nothing if its node has ended.
 */
function mayBeLate(command: Command, { answer }: LedgerAnswer): boolean {
  return command.verb === "settle" && answer === "already" && command.nanos > 0 && !command.isRepeatable;
}

/** The entry of a late settlement, with what it adds to its request. */
export interface LateEntry extends Tokens {
  requestId: string;
  endedAt: Date;
  usageSource: UsageSource;
  charged: number;
  uncharged: number;
  sessionUsedAfter: number;
  weekUsedAfter: number;
  monthUsedAfter: number;
}

type Tokens = Omit<Usage, "source">;

/** The sum of the tokens of a request and of its late settlement. */
export function tokensWithLate(request: Tokens, late: LateEntry): Tokens {
  return {
    inputTokens: request.inputTokens + late.inputTokens,
    cachedInputTokens: request.cachedInputTokens + late.cachedInputTokens,
    cacheWriteTokens: request.cacheWriteTokens + late.cacheWriteTokens,
    outputTokens: request.outputTokens + late.outputTokens,
    reasoningTokens: request.reasoningTokens + late.reasoningTokens,
  };
}

/** Reads the entries of the late settlements of these requests. The key is the request's id. */
export async function lateEntries(
  db: Querying,
  requestIds: readonly string[],
): Promise<ReadonlyMap<string, LateEntry>> {
  if (requestIds.length === 0) return new Map();
  const rows = await db.query<LateEntry>(finding, [requestIds.map((id) => bare(id, "req_"))]);
  return new Map(rows.map((row) => [row.requestId, row]));
}

const finding = `
  select ${shownId("c.id", "req_")} as "requestId", l.ended_at as "endedAt", l.input_tokens as "inputTokens",
    l.cached_input_tokens as "cachedInputTokens", l.cache_write_tokens as "cacheWriteTokens",
    l.output_tokens as "outputTokens", l.reasoning_tokens as "reasoningTokens", l.usage_source as "usageSource", l.charged,
    l.uncharged, l.session_used_after as "sessionUsedAfter", l.week_used_after as "weekUsedAfter",
    l.month_used_after as "monthUsedAfter"
  from unnest($1::uuid[]) c (id)
  cross join lateral (select * from usage_record r where r.request_id = usage_late_id(c.id) offset 0) l`;
