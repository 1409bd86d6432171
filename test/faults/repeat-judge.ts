// Checks the responses to clients with idempotency keys. Each request that an engine served has one response, byte for
// byte; its failure is repeated once, and then the key is free for a new request. At most one request of a key is
// charged, and each has one record.

import { uuidOf } from "../../src/core/store/ids.ts";
import {
  type Answer,
  type Client,
  cutWords,
  goneWords,
  lostLeaseWords,
  lostWords,
  runOf,
  unreadWords,
} from "./repeat-client.ts";
import { price, type Rig } from "./rig.ts";
import { ask } from "./stores.ts";

/** One ledger record of the client's API key, which no other client uses. */
export interface Charge {
  request_id: string;
  recovered: boolean;
  output_tokens: number;
  charged: number;
  uncharged: number;
  input_tokens: number;
  outcome: string;
  /** The usage window whose limit ended the response; null if none did. */
  stopped_by: string | null;
}

/** The outages of nodes and stores while a client sent its requests. */
export interface Befallen {
  /** Whether a store or a node was down, so that a stored log, and with it the response, may be lost for good. */
  mayLose: boolean;
  /** Whether the store that has the logs was down or was emptied. */
  mayLoseLogs: boolean;
  /** Whether a failover has lost confirmed writes, such as claims of keys. */
  isForgotten: boolean;
}

const nothing: Befallen = { mayLose: false, mayLoseLogs: false, isForgotten: false };

export interface Round {
  client: Client;
  /** UUID of the client's API key. */
  keyId: string;
}

/** Reads the ledger records. The key of the map is the UUID of the API key. */
export async function chargesOf(rig: Rig): Promise<Map<string, Charge[]>> {
  const rows = await ask(rig.postgres.port, async (db) => [
    ...(await db.query<Charge & { key_id: string }>(`
      select key_id, request_id, recovered, outcome, stopped_by, output_tokens::int, input_tokens::int, charged::int, uncharged::int
      from usage_record where operation <> 'adjustment'`)),
  ]);
  return Map.groupBy(rows, ({ key_id }) => key_id);
}

/** The objections to the responses of a client: one sentence for each broken rule. */
export function objectionsTo(client: Client, charges: readonly Charge[], befallen = nothing): string[] {
  const name = `${client.marker} (${client.path}${client.stream ? ", streamed" : ""})`;
  const said = client.answers
    .slice(0, 8)
    .map(({ node, status, end, took_ms }) => `${status} ${end} at ${node} in ${took_ms} ms`)
    .join(", ");
  const broken = [
    ...ofAnswers(client, befallen),
    ...(befallen.isForgotten ? [] : ofCharges(client, charges, befallen)),
  ];
  return broken.map((sentence) => `${name}: ${sentence} [${said}]`);
}

function ofAnswers({ answers, isServed, hasGivenUp }: Client, { mayLose, isForgotten }: Befallen): string[] {
  const last = answers.at(-1);
  const broken =
    isServed || hasGivenUp
      ? []
      : [`it got no whole answer; the last one was ${last?.status} ${last?.body.slice(-400)}`];
  if (answers.some(({ end }) => end === "silent")) broken.push("an answer ended without its protocol's end");
  for (const { status, body, end } of answers)
    if ((status === 400 || end === "lost") && !(end === "lost" && mayLose))
      broken.push(`it was refused for good: ${body.slice(-300)}`);
  const delivered = answers.filter(({ status }) => status === 200);
  for (const [run, all] of Map.groupBy(delivered, runOf)) {
    // A node that was cut off for long ends its response with an error that is not in the stored log, unless it had
    // charged it.
    const ends = [goneWords, unreadWords, lostLeaseWords, ...(mayLose ? [lostWords, '"storage_unavailable"'] : [])];
    // If a reader appended an error to the log, the first client may have got another error, which its node could not
    // store any more.
    if (all.some(({ body }) => body.includes(cutWords))) ends.push(...failureHeads);
    const texts = all.map((answer) => textOf(answer, ends));
    const longest = texts.reduce((one, other) => (other.length > one.length ? other : one), "");
    const other = texts.find((text) => !longest.startsWith(text));
    if (other !== undefined) broken.push(`the answers of ${run} differ: ${differenceOf(longest, other)}`);
    const wholes = all.filter(isOver).map((answer) => textOf(answer, ends));
    const short = wholes.find((text) => text !== longest);
    if (short !== undefined)
      broken.push(`a whole answer of ${run} is shorter than another by ${JSON.stringify(longest.slice(short.length))}`);
    const failed = all.findIndex(({ body }) => body.includes(goneWords));
    if (failed >= 0 && failed < all.length - 1 && !isForgotten)
      broken.push(`${run} was repeated after its failure was read`);
  }
  return broken;
}

function ofCharges({ answers, wanted }: Client, charges: readonly Charge[], { mayLose }: Befallen): string[] {
  const broken: string[] = [];
  const ids = new Set(charges.map(({ request_id }) => request_id));
  if (ids.size < charges.length) broken.push("a request has two records");
  const delivered = answers.filter(({ status }) => status === 200);
  for (const run of new Set(delivered.map(runOf)))
    if (!ids.has(uuidOf(run, "req_") ?? "")) broken.push(`${run} has no record`);
  const charged = charges.filter((one) => one.charged + one.uncharged > 0);
  if (!mayLose && charges.some(({ outcome }) => outcome === "cancelled")) broken.push("it ended with its client");
  const paid = charges.filter((one) => one.charged > 0);
  if (paid.length > 1) broken.push(`it was charged ${paid.length} times`);
  const last = delivered.findLast(isOver);
  for (const one of charged) {
    if (last && one.request_id !== uuidOf(runOf(last), "req_")) broken.push("it was charged for another answer");
    if (last?.end === "whole" && one.output_tokens !== wanted && one.stopped_by === null)
      broken.push(`it was charged ${one.output_tokens} of ${wanted} tokens`);
    if (one.charged + one.uncharged !== one.input_tokens * price.input + one.output_tokens * price.output)
      broken.push(`${one.charged} and ${one.uncharged} nanos are not what its tokens cost`);
  }
  const served = last && charges.find(({ request_id }) => request_id === uuidOf(runOf(last), "req_"));
  if (last?.end === "broken" && charged.length === 0) broken.push("its key is not free, and was charged nothing");
  if (last?.end === "whole" && !served?.recovered && charged.length === 0) broken.push("its answer was free");
  return broken;
}

function isOver({ end }: Answer): boolean {
  return end === "whole" || end === "broken";
}

/** The parts of two texts around the position from which they differ. */
function differenceOf(one: string, other: string): string {
  const at = [...other].findIndex((character, place) => character !== one[place]);
  const around = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 60), at + 60));
  return `at byte ${at} ${around(one)} became ${around(other)}`;
}

/** The beginnings of the frames with an error message. The cut of the connection may be within such a frame. */
const failureHeads = ["event: error", "event: response.failed", 'data: {"error"'];
const isFailureBegun = (cut: string) => failureHeads.some((head) => head.startsWith(cut) || cut.startsWith(head));

/**
 * The part of a response that the first client can have received, too. Removed are the comments that only a repeat has,
 * and an error frame at the end, complete or cut off, that has one of the texts in `failures`.
 */
function textOf({ body }: Answer, failures: readonly string[]): string {
  const said = body.replaceAll(": waiting\n\n", "");
  const frames = said.split(/(?<=\n\n)/);
  const failure = frames.findIndex((frame) => failures.some((words) => frame.includes(words)));
  if (failure >= 0) return frames.slice(0, failure).join("");
  const last = frames.at(-1) ?? "";
  // A comment or an error frame may be incomplete.
  const isCut = !last.endsWith("\n\n") && (isFailureBegun(last) || /^:[^\n]*\n?$/.test(last));
  return isCut ? frames.slice(0, -1).join("") : said;
}
