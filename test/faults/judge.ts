// Compares three books: what the engine produced, what clients received, what the ledger says.

import { uuidOf } from "../../src/store/ids.ts";
import { until } from "../harness/until.ts";
import type { Received } from "./load.ts";
import { checkpoint_s, lease_s, price, type Rig } from "./rig.ts";
import { ask } from "./stores.ts";

export interface Verdict {
  requests: number;
  answered: number;
  refused: number;
  records: number;
  recovered: number;
  tokens: number;
  charged: number;
  /** Sentences; empty when every promise was kept. */
  broken: string[];
}

interface Row {
  request_id: string;
  outcome: string;
  recovered: boolean;
  output_tokens: number;
  charged: number;
  uncharged: number;
  input_tokens: number;
}

/** All holds are settled a lease and a few sweeps after everything was mended. */
const quiet_ms = 1000 * (lease_s * 3 + 20);

export async function judge(rig: Rig, received: readonly Received[], tokensPerSecond: number): Promise<Verdict> {
  const port = rig.postgres.port;
  const holds = () =>
    ask(port, async (sql) => Number((await sql`select count(*) from usage_hold`)[0]!.count)).catch(() => -1);
  await until(async () => (await holds()) === 0, quiet_ms, "every hold to be settled");
  await until(() => rig.engine.counts.active === 0, 5000, "the engine to be let go");

  const rows = await ask(port, async (sql) => [
    ...(await sql<
      Row[]
    >`select request_id, outcome, recovered, output_tokens::int, charged::int, uncharged::int, input_tokens::int from usage_record`),
  ]);
  const windows = await ask(port, async (sql) => [
    ...(await sql<{ kind: string; used: number; held: number; charged: number }[]>`
      select kind, used::float8 used, held::float8 held,
        (select coalesce(sum(charged), 0)::float8 from usage_record r where r.organization_id = w.subject_id
          and case w.kind when 'session' then r.session_starts_at when 'week' then r.week_starts_at else r.month_starts_at end = w.starts_at
          and r.source = 'plan') charged
      from usage_window w where kind <> 'extra'`),
  ]);
  const limits = await ask(port, async (sql) => [
    ...(await sql<{ over: number }[]>`
      select count(*)::int as over from usage_record where session_used_after > session_limit or week_used_after > week_limit or month_used_after > month_limit`),
  ]);

  const broken: string[] = [];
  const byId = new Map(rows.map((row) => [row.request_id, row]));
  const produced = new Map<string, { tokens: number; times: number }>();
  for (const entry of rig.engine.requests) {
    const marker = /\bm\w{6}\b/.exec(JSON.stringify(entry.body) ?? "")?.[0];
    if (!marker) continue;
    const known = produced.get(marker) ?? { tokens: 0, times: 0 };
    produced.set(marker, { tokens: known.tokens + entry.tokens, times: known.times + 1 });
  }

  for (const window of windows) {
    if (window.held !== 0) broken.push(`the ${window.kind} window holds ${window.held} after every hold was settled`);
    if (window.used !== window.charged)
      broken.push(`the ${window.kind} window says ${window.used}, its records ${window.charged}`);
  }
  if (limits[0]!.over > 0) broken.push(`${limits[0]!.over} records stand past a limit`);

  let answered = 0;
  let refused = 0;
  const checkpointTokens = Math.ceil(tokensPerSecond * (checkpoint_s * 2 + 1)) + 2;
  for (const entry of received) {
    const row = entry.requestId ? byId.get(uuidOf(entry.requestId, "req_") ?? "") : undefined;
    const made = produced.get(entry.marker);
    if (entry.status === 429) refused += 1;
    if (made && made.times > 1) broken.push(`${entry.marker} was asked of the engine ${made.times} times`);
    if (entry.status !== 200) continue;
    answered += 1;
    const name = `${entry.marker} (${entry.requestId})`;
    if (!row) {
      broken.push(`${name} was answered and has no record`);
      continue;
    }
    if (row.charged + row.uncharged !== row.input_tokens * price.input + row.output_tokens * price.output)
      broken.push(`${name}: ${row.charged} and ${row.uncharged} units are not what its tokens cost`);
    if (row.output_tokens > (made?.tokens ?? 0))
      broken.push(`${name} is charged ${row.output_tokens} tokens, and the engine made ${made?.tokens ?? 0}`);
    const unpaid = entry.tokens - row.output_tokens;
    if (!row.recovered && unpaid > 0)
      broken.push(`${name} received ${entry.tokens} tokens and is charged ${row.output_tokens}`);
    if (row.recovered && unpaid > checkpointTokens)
      broken.push(`${name} was recovered ${unpaid} tokens short of what was delivered: more than a checkpoint`);
    if (entry.complete && !row.recovered && row.outcome === "completed" && row.output_tokens !== made?.tokens)
      broken.push(`${name} was complete with ${made?.tokens} tokens, and its record says ${row.output_tokens}`);
  }
  return {
    requests: received.length,
    answered,
    refused,
    records: rows.length,
    recovered: rows.filter((row) => row.recovered).length,
    tokens: received.reduce((sum, entry) => sum + entry.tokens, 0),
    charged: rows.reduce((sum, row) => sum + row.charged, 0),
    broken,
  };
}
