// Judges background responses: each has one end, which no node contradicts later; the charge is for the tokens that the
// response reports; and an idempotency key is charged once.

import { type BackgroundClient, isOver, tokensPerSecond } from "./background-client.ts";
import type { Befallen, Charge } from "./repeat-judge.ts";
import { checkpoint_s, lease_s } from "./rig.ts";

const statuses = new Set(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]);

/** What is wrong with a background response: sentences, each of which says what was broken. */
export function objectionsToBackground(
  client: BackgroundClient,
  charges: readonly Charge[],
  { isForgotten, mayLoseLogs }: Befallen,
): string[] {
  // A failover may have forgotten the response itself.
  if (isForgotten) return [];
  const { marker, ids, told, stream, hasKey } = client;
  const said = told
    .filter(({ status }, index) => status !== told[index - 1]?.status)
    .map(({ status, node, error }) => `${status} at ${node}${error ? `: ${error}` : ""}`);
  const name = `${marker} (background${stream ? ", streamed" : ""}${hasKey ? ", with a key" : ""}, ${ids.join(", ")})`;
  const broken = [...ofTold(client), ...ofCharges(client, charges), ...(mayLoseLogs ? [] : ofText(client, charges))];
  return broken.map((sentence) => `${name}: ${sentence} [${said.join(", ")}]`);
}

function ofTold({ told, hasGivenUp, wanted }: BackgroundClient): string[] {
  if (hasGivenUp) return [];
  const broken: string[] = [];
  const last = told.at(-1);
  if (!isOver(last)) broken.push("it has no end");
  for (const { status } of told) if (!statuses.has(status)) broken.push(`a node said ${status}`);
  const end = told.find(isOver);
  if (end && told.slice(told.indexOf(end)).some(({ status }) => status !== end.status))
    broken.push("its end changed after it was told");
  if (end?.status === "completed" && end.outputTokens !== wanted)
    broken.push(`it was completed with ${end.outputTokens} of ${wanted} tokens`);
  return broken;
}

/**
 * The most tokens that a run can have delivered beyond the last recorded count: those of a lease and a checkpoint
 * interval, and 50 more for a machine that is slow.
 */
const beyond_max = tokensPerSecond * (lease_s + checkpoint_s) + 50;

/**
 * What a run may still deliver after it was cancelled at another node, if its own node was frozen or slow to learn of
 * that.
 */
const afterCancel_max = tokensPerSecond;

/**
 * Checks a background response that did not come to its end. It is charged for the text that its GET returns; with a
 * key it may be charged less, because the repeat of its request pays. A Redis that loses its data takes the text away
 * from later reads, so the read after the end that returned most counts. Nobody has read what was written between that
 * read and the loss.
 */
function ofText({ told, hasGivenUp, hasKey }: BackgroundClient, charges: readonly Charge[]): string[] {
  const end = told.at(-1);
  if (hasGivenUp || (end?.status !== "failed" && end?.status !== "cancelled")) return [];
  const one = charges.findLast(({ charged, uncharged }) => charged + uncharged > 0);
  const counted = one?.output_tokens ?? 0;
  const text_tokens = Math.max(...told.filter(isOver).map(({ textTokens }) => textTokens));
  const said = `it says ${text_tokens} tokens, and is charged ${counted}`;
  const isLost = end.textTokens < text_tokens;
  const unread_max = end.status === "cancelled" && isLost ? afterCancel_max : 0;
  if (counted > text_tokens + unread_max) return [said];
  if (hasKey) return [];
  const isShort = text_tokens - counted > (charges.at(-1)?.recovered ? beyond_max : 0);
  return isShort && charges.at(-1)?.stopped_by === null ? [said] : [];
}

function ofCharges({ told, hasGivenUp, hasKey }: BackgroundClient, charges: readonly Charge[]): string[] {
  const broken: string[] = [];
  const charged = charges.filter((one) => one.charged + one.uncharged > 0);
  if (charged.length > 1) broken.push(`it was charged ${charged.length} times`);
  if (new Set(charges.map(({ request_id }) => request_id)).size < charges.length)
    broken.push("a request has two records");
  const end = told.at(-1);
  if (hasGivenUp || !isOver(end)) return broken;
  if (charges.length === 0) broken.push("it has no record");
  const [one] = charged;
  // The response's node may have died between the end of the response and its settlement. Then the recovery charges
  // less, or nothing.
  const mayBeFree = charges.some(({ recovered }) => recovered);
  if (end?.status === "completed" && !mayBeFree && one?.output_tokens !== end.outputTokens)
    broken.push(`it says ${end.outputTokens} tokens, and is charged ${one?.output_tokens}`);
  if (hasKey && one?.recovered) broken.push("a key was charged by a recovery");
  return broken;
}
