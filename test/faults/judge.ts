// Compares three records of a run: the tokens that the engines generated, those that the clients received, and the
// ledger.

import { stepTokens } from "../../src/core/admission/allowance.ts";
import { idOf, uuidOf } from "../../src/core/store/ids.ts";
import { until } from "../harness/until.ts";
import type { PlanChange } from "./administrator.ts";
import { warningsOf } from "./explained.ts";
import type { Scene } from "./injuries.ts";
import { isForgotten, type Row, readBook } from "./ledger-book.ts";
import { type Charge, highestRaise, type LimitChange, pastSubjectLimits, type RaiseSet } from "./limits.ts";
import type { Received } from "./load.ts";
import { active, checkpoint_s, lease_s, price, type Rig } from "./rig.ts";
import { ask } from "./stores.ts";

export interface Verdict {
  requests: number;
  answered: number;
  refused: number;
  records: number;
  recovered: number;
  /** Records that another node's recovery settled, and to which the request's own node later added the rest. */
  late: number;
  /** Records of unstreamed responses that were not delivered, because their engine or their node failed. */
  undelivered: number;
  /** Records of unstreamed responses whose client left. */
  left: number;
  /** Records whose output exceeds the tokens of the first hold. */
  grown: number;
  /** Records of responses that ended because a usage window was exhausted. */
  stopped: number;
  /** Records of responses that came from another engine than the first one. */
  rerouted: number;
  /** Records of responses whose engine reported a usage that the gateway did not accept. */
  rejected: number;
  /** Complete responses of the embeddings endpoint; the next two fields count those of rerank and of completions. */
  embeddings: number;
  rankings: number;
  completions: number;
  /** Records that count in the usage windows of a person with limits. */
  ofPeople: number;
  /** Requests without a record, because a failover lost it. */
  forgotten: number;
  tokens: number;
  charged: number;
  /** The objections: one sentence for each broken rule; empty if every rule was kept. */
  broken: string[];
}

/** The events of the run besides the requests, which explain some deviations. */
export interface Circumstances {
  planChanges: readonly PlanChange[];
  limitChanges?: readonly LimitChange[];
  raises?: readonly RaiseSet[];
  /** Errors of an administrator's changes that no outage explains. */
  mistakes?: readonly string[];
  forgotten: Scene["forgotten"];
}

/** How long to wait after all faults were repaired: every open hold is settled within a lease and a few sweeps. */
const quiet_ms = 1000 * (lease_s * 3 + 20);

export async function judge(rig: Rig, received: readonly Received[], happened: Circumstances): Promise<Verdict> {
  const { port } = rig.postgres;
  const holds = () =>
    ask(port, async (db) => (await db.query<{ count: number }>("select count(*) from usage_hold"))[0]!.count).catch(
      () => -1,
    );
  await until(async () => (await holds()) === 0, quiet_ms, "every hold to be settled");
  await until(() => active(rig) === 0, 8_000, "the engines to be let go");
  return compared(rig, received, happened);
}

/** Compares the records of the engines, the clients and the ledger as they are now, and returns the verdict. */
export async function compared(rig: Rig, received: readonly Received[], happened: Circumstances): Promise<Verdict> {
  const { rows, windows } = await readBook(rig.postgres.port);
  const broken = (happened.mistakes ?? []).map((mistake) => `an administrator was refused: ${mistake}`);
  for (const window of windows) {
    const name = `the ${window.kind} window of ${window.subject_id} from ${window.starts_at}`;
    if (window.held !== 0) broken.push(`${name} holds ${window.held} after every hold was settled`);
    if (window.used !== window.charged) broken.push(`${name} says ${window.used}, its records ${window.charged}`);
    if (window.of_own_keys !== null && window.used !== window.of_own_keys)
      broken.push(`${name} says ${window.used} of a person, and the records of the keys ${window.of_own_keys}`);
  }
  const people = new Set(windows.filter((one) => one.of_own_keys !== null).map((one) => one.subject_id));
  const hasForgotten = happened.forgotten.length > 0;
  const { forgotten: spans } = happened;
  for (const row of rows.filter(isUndelivered))
    broken.push(...withBooks(chargedForNothing(row, hasForgotten), { row, forgotten: spans }, rig));
  const byId = new Map(rows.map((row) => [row.request_id, row]));
  const attemptsOf = attemptsIn(rig);
  const charges: Charge[] = [];
  let forgotten = 0;
  for (const entry of received) {
    if (entry.status !== 200) continue;
    const row = byId.get(uuidOf(entry.requestId ?? "", "req_") ?? "");
    const attempts = attemptsOf.get(entry.marker) ?? [];
    if (row) charges.push({ entry, row });
    const mayLack = isForgotten(entry, happened.forgotten);
    if (!row && mayLack) forgotten += 1;
    else {
      const objected = [...objections(entry, row, attempts, mayLack), ...pastLimit(entry, row, happened)];
      broken.push(...withBooks(objected, { entry, row, forgotten: spans }, rig));
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
 * Objects to a charge for an unstreamed response that was not delivered: such a response costs nothing until it is
 * complete. If a failover lost the information that it ran in the background, and its hold, its record has the tokens
 * of its text, but these must not be charged either.
 */
function chargedForNothing(
  { request_id, charged, uncharged, input_tokens, output_tokens }: Row,
  hasForgotten: boolean,
): string[] {
  if (charged + uncharged + input_tokens + output_tokens === 0) return [];
  if (hasForgotten && charged === 0) return [];
  return [`${request_id} was not streamed and not delivered, and is charged ${charged} and not charged ${uncharged}`];
}

/**
 * The objections to a request, with the data of the engines, the client, the ledger and every log about it, so that the
 * cause can be found.
 */
function withBooks(
  objected: readonly string[],
  { entry, row, forgotten }: { entry?: Received; row: Row | undefined; forgotten: Circumstances["forgotten"] },
  { nodes, engines }: Rig,
): string[] {
  if (objected.length === 0) return [];
  const requestId = entry?.requestId ?? (row ? idOf(row.request_id, "req_") : "");
  const asked = engines.flatMap(({ engine }) => engine.requests.filter(({ body }) => markerOf(body) === entry?.marker));
  const all = { received: entry ?? null, record: row ?? null, asked: entry ? asked : null, forgotten };
  const books = Object.entries(all).map(([name, book]) => `${name}: ${JSON.stringify(book)}`);
  return objected.map((objection) => [objection, ...books, ...warningsOf(requestId, nodes)].join("\n    "));
}

/** One request that an engine got on behalf of a client's request. */
interface Attempt {
  /** The output tokens that the engine generated. */
  tokens: number;
  /** Whether the gateway requested the response in one piece. */
  isWhole: boolean;
}

/** The attempts of each request. The key is the marker in the request. */
function attemptsIn(rig: Rig): Map<string, Attempt[]> {
  const found = new Map<string, Attempt[]>();
  for (const { engine } of rig.engines)
    for (const { body, tokens } of engine.requests) {
      const marker = markerOf(body);
      const isWhole = (body as { stream?: boolean } | undefined)?.stream !== true;
      if (marker) found.set(marker, [...(found.get(marker) ?? []), { tokens, isWhole }]);
    }
  return found;
}

function markerOf(body: unknown): string | undefined {
  return /\bm\w{6}\b/.exec(JSON.stringify(body) ?? "")?.[0];
}

/** The objections to the record of a request. `mayLack`: a failover may have lost a part of the request's data. */
function objections(entry: Received, row: Row | undefined, attempts: readonly Attempt[], mayLack: boolean): string[] {
  const name = `${entry.marker} (${entry.requestId})`;
  if (!row) return [`${name} was answered and has no record`];
  const broken: string[] = [];
  const produced = attempts.map(({ tokens }) => tokens);
  const most = Math.max(0, ...produced);
  const searches = row.input_tokens > 0 ? entry.searches * price.search : 0;
  if (row.charged + row.uncharged !== row.input_tokens * price.input + row.output_tokens * price.output + searches)
    broken.push(`${name}: ${row.charged} and ${row.uncharged} nanos are not what its tokens and searches cost`);
  if (isByLetters(attempts, row)) return broken;
  if (row.output_tokens > most && !isSingleDelta(row, most))
    broken.push(`${name} is charged ${row.output_tokens} tokens, and its engines made ${produced}`);
  if (row.attempts !== null && attempts.length > row.attempts)
    broken.push(`${name} was asked of engines ${attempts.length} times, and its record says ${row.attempts}`);
  if (mayLack) return broken;
  const unpaid = entry.tokens - row.output_tokens;
  if ((!row.recovered || row.is_late) && unpaid > 0)
    broken.push(`${name} received ${entry.tokens} tokens and is charged ${row.output_tokens}`);
  const checkpointTokens = Math.ceil(entry.tokensPerSecond * (checkpoint_s * 2 + 1)) + 2;
  // Checked for streams only. The hold of an unstreamed response may be recovered although the client got the whole
  // response: its node died between the response and the settlement.
  if (row.recovered && row.stream && unpaid > checkpointTokens)
    broken.push(`${name} was recovered ${unpaid} tokens short of what was delivered: more than a checkpoint`);
  if (entry.complete && !row.recovered && entry.inputTokens !== null && entry.inputTokens !== row.input_tokens)
    broken.push(`${name} was told of ${entry.inputTokens} input tokens, and is charged for ${row.input_tokens}`);
  const isWhole = entry.complete && !row.recovered && row.outcome === "completed" && row.stopped_by === null;
  const made = `its engines made ${produced} of ${entry.wanted} tokens`;
  if (isWhole && !(produced.includes(entry.wanted) && row.output_tokens === entry.wanted))
    broken.push(`${name} was complete, ${made}, and its record says ${row.output_tokens}`);
  if (isWhole && entry.tokens !== entry.wanted)
    broken.push(`${name} was complete, ${made}, and it received ${entry.tokens}`);
  return broken;
}

/**
 * Whether the output was estimated by its letters, which is inexact. That happens when an engine sends the response in
 * one piece and its report of the usage is not accepted. Engines are asked for one piece when the limit on the output
 * is small, whether the caller or a usage window sets it.
 */
function isByLetters(attempts: readonly Attempt[], { is_rejected, usage_source }: Row): boolean {
  return attempts.some(({ isWhole }) => isWhole) && is_rejected && usage_source === "estimated";
}

/**
 * Whether a response broke off after one delta. It may have come in one piece; then it is estimated by its letters, and
 * a long token counts as two (docs/design/usage.md, Counting tokens).
 */
function isSingleDelta({ outcome, output_tokens, usage_source }: Row, made: number): boolean {
  return made === 1 && outcome !== "completed" && usage_source === "estimated" && output_tokens === 2;
}

/** The longest that a plan's change may take to reach a node, or that an outage delays a batch of ledger commands. */
const heard_ms = 20_000;

/** Objects if a request was charged beyond the limits that may have been in force while it ran. */
function pastLimit(entry: Received, row: Row | undefined, happened: Circumstances): string[] {
  const { planChanges, forgotten, raises = [] } = happened;
  if (!row || row.charged === 0 || row.session_used_after === null) return [];
  // A failover loses holds, so more requests are admitted than the limit allows, and it may restore any earlier plan.
  if (forgotten.some(({ from_ms }) => from_ms <= entry.ended_ms + heard_ms)) return [];
  // A change of the store's clock may restore the first plan, the one in sluice.yaml.
  const inForce = planChanges.filter(({ at_ms }, index) => {
    const until_ms = planChanges[index + 1]?.at_ms ?? Number.POSITIVE_INFINITY;
    return index === 0 || (at_ms <= entry.ended_ms + heard_ms && until_ms >= entry.began_ms - heard_ms);
  });
  const limits = inForce.map(({ session }) => session ?? Number.POSITIVE_INFINITY);
  const limit = Math.max(...limits, highestRaise(raises, row.organization_id, entry));
  if (row.session_used_after <= limit) return [];
  return [`${entry.marker} (${entry.requestId}) stands at ${row.session_used_after} of ${limit} nanos`];
}
