// Compares three accounts of a session (one run of load and faults): what the engine sent, what the clients received,
// and what the gateway recorded. It is pure. proof/README.md, Verdicts.

import type { Seen } from "./client.ts";
import type { Attempt } from "./engine.ts";
import type { Usage } from "./target.ts";

export type Verdict = "lost" | "doubled" | "overspent" | "leaked" | "charged without delivery" | "unexplained";

export interface Finding {
  verdict: Verdict;
  /** By how many output tokens the gateway's recorded usage is wrong. */
  tokens: number;
  /** A sentence that describes the finding, with numbers. */
  says: string;
}

export interface Injury {
  /** The name of the fault: its kind, and the program or link that it hit. */
  fault: string;
  /**
   * The kind of target: a node, a store, or `outside` for a connection between clients and gateway, or gateway and
   * engine.
   */
  place: "node" | "store" | "outside";
  /** The name of the node that the fault hit; null if it concerns every node. */
  node: string | null;
  from_ms: number;
  until_ms: number;
}

/** The observations of a key's clients, and the gateway's records of that key. */
export interface Account {
  key: string;
  output_tokens_max: number | null;
  seen: readonly Seen[];
  usage: Usage;
}

export interface Truth {
  book: ReadonlyMap<string, readonly Attempt[]>;
  injuries: readonly Injury[];
  uncounted_ms_max: number;
  cut_off_ms_max: number;
  estimate_share_max: number;
}

/** The smallest and the largest number of tokens that a correct gateway can have recorded. */
interface Span {
  least: number;
  most: number;
}

/**
 * The number of tokens by which a count may be wrong, in addition to a share of it, if no usage report of the engine
 * confirms it.
 */
const few = 2;
/**
 * How long after its end a fault may still affect a request: a settlement that one fault delayed may be hit by the next
 * fault.
 */
const settling_ms = 5_000;

export function judge(account: Account, truth: Truth): Finding[] {
  const spans = account.seen.map((seen) => spanOf(seen, truth));
  const least = sum(spans.map((span) => span.least));
  const most = sum(spans.map((span) => span.most));
  const charged = account.usage.output_tokens;
  const findings: Finding[] = [];
  const free = chargedForNothing(account, truth);
  if (free) findings.push(free);
  const numbers = `${account.key}: ${charged} tokens in the book, ${least} to ${most} are right; ${describe(account, truth)}`;
  if (charged < least) findings.push({ verdict: "lost", tokens: least - charged, says: numbers });
  if (charged > most)
    findings.push({ verdict: excess(charged - most, account, truth), tokens: charged - most, says: numbers });
  const spent = overspent(account, truth, least);
  if (spent) findings.push(spent);
  return findings;
}

/**
 * The number of tokens that were delivered but not recorded by the gateway, whether or not it promises to count them.
 */
export function uncounted(account: Account): number {
  return Math.max(0, sum(account.seen.map(({ tokens }) => tokens)) - account.usage.output_tokens);
}

function spanOf(seen: Seen, truth: Truth): Span {
  const { book, injuries, estimate_share_max } = truth;
  const attempts = book.get(seen.script.id) ?? [];
  const written = Math.max(0, ...attempts.map((attempt) => attempt.written));
  const { report, tokens, gap_ms } = seen.script;
  const wasInjured = isInjured(seen, injuries);
  const isExact = report === "true" && attempts.some((attempt) => attempt.reported) && seen.isWhole;
  const span =
    isExact && seen.tokens === tokens
      ? { least: tokens, most: tokens }
      : {
          least: Math.floor(seen.tokens * (1 - estimate_share_max)) - few,
          most: Math.ceil(written * (1 + estimate_share_max)) + few,
        };
  if (written === 0) return { least: 0, most: attempts.length === 0 ? 0 : few };
  // An unstreamed response is delivered all at once, so a node that died at that time may not have counted it.
  if (!seen.stream && (!seen.isWhole || wasInjured)) return { least: 0, most: span.most };
  const allowance = wasInjured ? Math.ceil(uncounted_ms(seen, truth) / gap_ms) + few : 0;
  return { least: Math.max(0, span.least - allowance), most: span.most };
}

/**
 * Finds a charge to a key whose requests all failed before anything was delivered: such a key owes nothing. To a
 * gateway, a client whose connection was cut looks like one that left by itself, so keys with clients of either kind
 * are not checked here.
 */
function chargedForNothing(account: Account, truth: Truth): Finding | null {
  const { key, seen, usage } = account;
  const { injuries } = truth;
  const gotNothing = seen.every((one) => one.tokens === 0 && !one.isWhole && !one.hasLeft && !isInjured(one, injuries));
  if (!gotNothing || seen.length === 0 || usage.input_tokens + usage.output_tokens === 0) return null;
  const says = `${key}: nothing was delivered, and the book has ${usage.input_tokens} tokens of input and ${usage.output_tokens} of output; ${describe(account, truth)}`;
  return { verdict: "charged without delivery", tokens: usage.output_tokens, says };
}

function isInjured(seen: Seen, injuries: readonly Injury[]): boolean {
  return injuriesOf(seen, injuries).length > 0;
}

function injuriesOf(seen: Seen, injuries: readonly Injury[]): Injury[] {
  return injuries.filter(
    ({ node, from_ms, until_ms }) =>
      (node === null || node === seen.node) && from_ms <= seen.ended_ms + settling_ms && until_ms >= seen.began_ms,
  );
}

function excess(tokens: number, account: Account, truth: Truth): Verdict {
  const wrote = account.seen.filter(({ script }) => truth.book.get(script.id)?.some((attempt) => attempt.written > 0));
  if (wrote.length === 0) return "charged without delivery";
  // If the excess is about the size of one request, the gateway has probably counted that request twice.
  const counts = wrote.map(({ script }) =>
    Math.max(...(truth.book.get(script.id) ?? []).map((entry) => entry.written)),
  );
  return counts.some((count) => Math.abs(tokens - count) <= few) ? "doubled" : "unexplained";
}

/**
 * Finds usage beyond a key's limit. Two kinds of delivered tokens do not count as a breach: tokens that may be
 * uncounted because a node died, and tokens that a node delivered while it alone was cut off from the stores, as far as
 * the gateway's documents allow that.
 */
function overspent(account: Account, truth: Truth, least: number): Finding | null {
  const { key, output_tokens_max, seen, usage } = account;
  if (output_tokens_max === null) return null;
  // One delta of each running response may still arrive after the limit is reached.
  const underWay = seen.filter(({ status }) => status === 200).length;
  const allowed = output_tokens_max + underWay + sum(seen.map((one) => latest(one, truth)));
  const most = Math.max(least, usage.output_tokens);
  if (most <= allowed) return null;
  const delivered = sum(seen.map(({ tokens }) => tokens));
  const numbers = `${key}: ${delivered} tokens delivered and ${usage.output_tokens} in the book, of ${output_tokens_max} allowed`;
  return { verdict: "overspent", tokens: most - output_tokens_max, says: `${numbers}; ${describe(account, truth)}` };
}

/**
 * The number of a stream's tokens that the gateway may record beyond a limit: none, unless the stream's node was cut
 * off for longer than `cut_off_ms_max`.
 */
function latest(seen: Seen, { injuries, cut_off_ms_max }: Truth): number {
  const isCutOff = (injury: Injury) =>
    injury.node !== null && injury.place !== "outside" && lengthOf(injury) > cut_off_ms_max;
  if (cut_off_ms_max === 0 || !seen.stream || !injuriesOf(seen, injuries).some(isCutOff)) return 0;
  return Math.min(seen.tokens, Math.ceil(cut_off_ms_max / seen.script.gap_ms));
}

/**
 * The part of a stream, in milliseconds of its delivery, that may be uncounted if its node died. It is larger if the
 * node had no store to write a checkpoint to.
 */
function uncounted_ms(seen: Seen, { injuries, uncounted_ms_max, cut_off_ms_max }: Truth): number {
  const hurt = injuriesOf(seen, injuries);
  const hasDied = hurt.some(({ fault, place }) => place === "node" && fault.startsWith("kill"));
  const withoutStore_ms = sum(hurt.filter(({ place }) => place === "store").map(lengthOf));
  return uncounted_ms_max + (hasDied ? Math.min(cut_off_ms_max, withoutStore_ms) : 0);
}

const lengthOf = ({ from_ms, until_ms }: Injury): number => until_ms - from_ms;

/** Describes the requests of a key, for a person who investigates a finding. */
function describe({ seen }: Account, { book, injuries }: Truth): string {
  return seen
    .map((one) => {
      const { script, status, tokens, stream, isWhole, hasLeft } = one;
      const attempts = (book.get(script.id) ?? []).map(({ written }) => written).join("+") || "0";
      const end = isWhole ? "whole" : hasLeft ? "left" : "broken";
      return `${script.id} ${stream ? "stream" : "whole"} ${status ?? "no answer"} ${end}, saw ${tokens}, engine wrote ${attempts} of ${script.tokens}, report ${script.report}${timesOf(one, injuries)}`;
    })
    .join("; ");
}

/** The duration of the request, and the beginnings and ends of its faults, in seconds after the request began. */
function timesOf(seen: Seen, injuries: readonly Injury[]): string {
  const after = (instant_ms: number) => ((instant_ms - seen.began_ms) / 1000).toFixed(1);
  const faults = injuriesOf(seen, injuries).map(
    ({ fault, from_ms, until_ms }) => `${fault} ${after(from_ms)} to ${after(until_ms)}`,
  );
  return faults.length === 0 ? "" : `, at ${seen.node} for ${after(seen.ended_ms)} s (${faults.join(", ")})`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
