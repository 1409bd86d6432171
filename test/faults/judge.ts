// Compares three books: what the engines produced, what clients received, what the ledger says.

import { stepTokens } from "../../src/core/admission/allowance.ts";
import { uuidOf } from "../../src/core/store/ids.ts";
import { until } from "../harness/until.ts";
import type { PlanChange } from "./administrator.ts";
import type { Scene } from "./injuries.ts";
import { isForgotten, type Row, readBook } from "./ledger-book.ts";
import { type Charge, highestRaise, type LimitChange, pastSubjectLimits, type RaiseSet } from "./limits.ts";
import type { Received } from "./load.ts";
import { checkpoint_s, lease_s, price, type Rig } from "./rig.ts";
import { ask } from "./stores.ts";

export interface Verdict {
  requests: number;
  answered: number;
  refused: number;
  records: number;
  recovered: number;
  /** Of these, settled late by their own node as well. */
  late: number;
  /** That nobody streamed and that were not delivered: their engine or their node failed. */
  undelivered: number;
  /** That nobody streamed, and whose client left. */
  left: number;
  /** Longer than what is held at first. */
  grown: number;
  /** Ended where a window did. */
  stopped: number;
  /** Answered by another engine than the first that was asked. */
  rerouted: number;
  /** Reports of engines that were not believed. */
  rejected: number;
  /** Delivered whole. */
  embeddings: number;
  rankings: number;
  completions: number;
  /** That count in a person who is limited. */
  ofPeople: number;
  /** Answers that a failover has forgotten, as the store had not written them anywhere else. */
  forgotten: number;
  tokens: number;
  charged: number;
  /** Sentences; empty when every promise was kept. */
  broken: string[];
}

/** What happened besides, which a judge has to know. */
export interface Circumstances {
  planChanges: readonly PlanChange[];
  limitChanges?: readonly LimitChange[];
  raises?: readonly RaiseSet[];
  /** What an administrator was refused without need. */
  mistakes?: readonly string[];
  forgotten: Scene["forgotten"];
}

/** All holds are settled a lease and a few sweeps after everything was mended. */
const quiet_ms = 1000 * (lease_s * 3 + 20);

export async function judge(rig: Rig, received: readonly Received[], happened: Circumstances): Promise<Verdict> {
  const { port } = rig.postgres;
  const holds = () =>
    ask(port, async (db) => (await db.query<{ count: number }>("select count(*) from usage_hold"))[0]!.count).catch(
      () => -1,
    );
  await until(async () => (await holds()) === 0, quiet_ms, "every hold to be settled");
  const active = () => rig.engines.reduce((sum, { engine }) => sum + engine.counts.active, 0);
  await until(() => active() === 0, 8_000, "the engines to be let go");
  return compared(rig, received, happened);
}

/** As the books stand now. */
export async function compared(rig: Rig, received: readonly Received[], happened: Circumstances): Promise<Verdict> {
  const { rows, windows } = await readBook(rig.postgres.port);
  const broken = (happened.mistakes ?? []).map((mistake) => `an administrator was refused: ${mistake}`);
  for (const window of windows) {
    const name = `the ${window.kind} window of ${window.subject_id} from ${window.starts_at}`;
    if (window.held !== 0) broken.push(`${name} holds ${window.held} after every hold was settled`);
    if (window.used !== window.charged) broken.push(`${name} says ${window.used}, its records ${window.charged}`);
    if (window.of_her_keys !== null && window.used !== window.of_her_keys)
      broken.push(`${name} says ${window.used} of a person, and the records of her keys ${window.of_her_keys}`);
  }
  const people = new Set(windows.filter((one) => one.of_her_keys !== null).map((one) => one.subject_id));
  const hasForgotten = happened.forgotten.length > 0;
  broken.push(...rows.filter(isUndelivered).flatMap((row) => chargedForNothing(row, hasForgotten)));
  const byId = new Map(rows.map((row) => [row.request_id, row]));
  const produced = producedBy(rig);
  const charges: Charge[] = [];
  let forgotten = 0;
  for (const entry of received) {
    if (entry.status !== 200) continue;
    const row = byId.get(uuidOf(entry.requestId ?? "", "req_") ?? "");
    const attempts = produced.get(entry.marker) ?? [];
    if (row) charges.push({ entry, row });
    const mayLack = isForgotten(entry, happened.forgotten);
    if (!row && mayLack) forgotten += 1;
    else {
      const objected = [...objections(entry, row, attempts, mayLack), ...pastLimit(entry, row, happened)];
      broken.push(...withBooks(objected, entry, row, rig));
    }
  }
  const { limitChanges = [], raises = [] } = happened;
  broken.push(...pastSubjectLimits(charges, limitChanges, raises, happened.forgotten));
  return {
    requests: received.length,
    answered: received.filter(({ status }) => status === 200).length,
    refused: received.filter(({ status }) => status === 429).length,
    records: rows.length,
    recovered: rows.filter((row) => row.recovered).length,
    late: rows.filter((row) => row.is_late).length,
    undelivered: rows.filter(isUndelivered).length,
    left: rows.filter(({ stream, outcome }) => !stream && outcome === "cancelled").length,
    grown: rows.filter((row) => row.output_tokens > stepTokens).length,
    stopped: rows.filter((row) => row.stopped_by !== null).length,
    rerouted: rows.filter((row) => (row.attempts ?? 0) > 1 && row.outcome === "completed").length,
    rejected: rows.filter((row) => row.is_rejected).length,
    embeddings: completed(rows, "embeddings"),
    rankings: completed(rows, "rerank"),
    completions: completed(rows, "completions"),
    ofPeople: rows.filter(({ subjects }) => subjects?.some((id) => people.has(id))).length,
    forgotten,
    tokens: received.reduce((sum, entry) => sum + entry.tokens, 0),
    charged: rows.reduce((sum, row) => sum + row.charged, 0),
    broken,
  };
}

function completed(rows: readonly Row[], operation: string): number {
  return rows.filter((row) => row.operation === operation && row.outcome === "completed").length;
}

function isUndelivered({ stream, is_background, outcome, recovered }: Row): boolean {
  return !stream && !is_background && (recovered || outcome === "failed");
}

/**
 * An answer that nobody streams costs nothing before it is whole. A failover may have forgotten that a response ran in the
 * background, and what was held for it: its text is in the record then, and costs nothing either.
 */
function chargedForNothing(
  { request_id, charged, uncharged, input_tokens, output_tokens }: Row,
  hasForgotten: boolean,
): string[] {
  if (charged + uncharged + input_tokens + output_tokens === 0) return [];
  if (hasForgotten && charged === 0) return [];
  return [`${request_id} was not streamed and not delivered, and is charged ${charged} and not charged ${uncharged}`];
}

/** The objections to a request, with what every book and every log says of the request, so that the cause can be found. */
function withBooks(
  objected: readonly string[],
  entry: Received,
  row: Row | undefined,
  { nodes, engines }: Rig,
): string[] {
  if (objected.length === 0) return [];
  const warned = nodes.flatMap((node) => node.warnedOf(entry.requestId ?? "").map((line) => `${node.name}: ${line}`));
  const asked = engines.flatMap(({ engine }) => engine.requests.filter(({ body }) => markerOf(body) === entry.marker));
  const all = { received: entry, record: row, asked };
  const books = [...Object.entries(all).map(([name, book]) => `${name}: ${JSON.stringify(book)}`), ...warned].join(
    "\n    ",
  );
  return objected.map((objection) => `${objection}\n    ${books}`);
}

/** By the marker of a request: what each attempt has produced. */
function producedBy(rig: Rig): Map<string, number[]> {
  const produced = new Map<string, number[]>();
  for (const { engine } of rig.engines)
    for (const { body, tokens } of engine.requests) {
      const marker = markerOf(body);
      if (marker) produced.set(marker, [...(produced.get(marker) ?? []), tokens]);
    }
  return produced;
}

function markerOf(body: unknown): string | undefined {
  return /\bm\w{6}\b/.exec(JSON.stringify(body) ?? "")?.[0];
}

/** `mayLack`: a failover has forgotten something of it. */
function objections(entry: Received, row: Row | undefined, attempts: number[], mayLack: boolean): string[] {
  const name = `${entry.marker} (${entry.requestId})`;
  if (!row) return [`${name} was answered and has no record`];
  const broken: string[] = [];
  const most = Math.max(0, ...attempts);
  const searches = row.input_tokens > 0 ? entry.searches * price.search : 0;
  if (row.charged + row.uncharged !== row.input_tokens * price.input + row.output_tokens * price.output + searches)
    broken.push(`${name}: ${row.charged} and ${row.uncharged} nanos are not what its tokens and searches cost`);
  if (isByLetters(entry, row)) return broken;
  if (row.output_tokens > most && !isSingleDelta(row, most))
    broken.push(`${name} is charged ${row.output_tokens} tokens, and its engines made ${attempts}`);
  if (row.attempts !== null && attempts.length > row.attempts)
    broken.push(`${name} was asked of engines ${attempts.length} times, and its record says ${row.attempts}`);
  if (mayLack) return broken;
  const unpaid = entry.tokens - row.output_tokens;
  if ((!row.recovered || row.is_late) && unpaid > 0)
    broken.push(`${name} received ${entry.tokens} tokens and is charged ${row.output_tokens}`);
  const checkpointTokens = Math.ceil(entry.tokensPerSecond * (checkpoint_s * 2 + 1)) + 2;
  // Of what came whole, the node died between the answer and its settlement.
  if (row.recovered && row.stream && unpaid > checkpointTokens)
    broken.push(`${name} was recovered ${unpaid} tokens short of what was delivered: more than a checkpoint`);
  if (entry.complete && !row.recovered && entry.inputTokens !== null && entry.inputTokens !== row.input_tokens)
    broken.push(`${name} was told of ${entry.inputTokens} input tokens, and is charged for ${row.input_tokens}`);
  const isWhole = entry.complete && !row.recovered && row.outcome === "completed" && row.stopped_by === null;
  const made = `its engines made ${attempts} of ${entry.wanted} tokens`;
  if (isWhole && !(attempts.includes(entry.wanted) && row.output_tokens === entry.wanted))
    broken.push(`${name} was complete, ${made}, and its record says ${row.output_tokens}`);
  if (isWhole && entry.tokens !== entry.wanted)
    broken.push(`${name} was complete, ${made}, and it received ${entry.tokens}`);
  return broken;
}

/** What came whole, and whose report is not believed, is counted by its letters, which is no exact count. */
function isByLetters({ isWhole }: Received, { is_rejected, usage_source }: Row): boolean {
  return isWhole && is_rejected && usage_source === "estimated";
}

/**
 * An answer that broke off after one delta may have come whole: it is counted by its letters, and a long token is two
 * (docs/design/usage.md, Counting tokens).
 */
function isSingleDelta({ outcome, output_tokens, usage_source }: Row, made: number): boolean {
  return made === 1 && outcome !== "completed" && usage_source === "estimated" && output_tokens === 2;
}

/** Nodes hear of a plan within so long, and a batch may wait for an outage. */
const heard_ms = 20_000;

/** Nothing is charged past the limit that counted while it ran. */
function pastLimit(entry: Received, row: Row | undefined, happened: Circumstances): string[] {
  const { planChanges, forgotten, raises = [] } = happened;
  if (!row || row.charged === 0 || row.session_used_after === null) return [];
  // The plan of the file may come back with a clock that was set, any with a failover.
  const inForce = planChanges.filter(({ at_ms }, index) => {
    const until_ms = planChanges[index + 1]?.at_ms ?? Number.POSITIVE_INFINITY;
    return (
      index === 0 ||
      forgotten.length > 0 ||
      (at_ms <= entry.ended_ms + heard_ms && until_ms >= entry.began_ms - heard_ms)
    );
  });
  const limits = inForce.map(({ session }) => session ?? Number.POSITIVE_INFINITY);
  const limit = Math.max(...limits, highestRaise(raises, row.organization_id, entry));
  if (row.session_used_after <= limit) return [];
  return [`${entry.marker} (${entry.requestId}) stands at ${row.session_used_after} of ${limit} nanos`];
}
