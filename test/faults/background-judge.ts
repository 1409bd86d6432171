// Checks background responses: each ends once, and all nodes report the same end; the charge is for the tokens that the
// response reports; and requests with one idempotency key are charged once.

import { type BackgroundClient, isOver, tokensPerSecond } from "./background-client.ts";
import type { Befallen, Charge } from "./repeat-judge.ts";
import { checkpoint_s, lease_s } from "./rig.ts";

const statuses = new Set(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]);

/** The objections to a background response: one sentence for each broken rule. */
export function objectionsToBackground(
  client: BackgroundClient,
  charges: readonly Charge[],
  { isForgotten, mayLoseLogs }: Befallen,
): string[] {
  // A failover may have lost the response itself.
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
 * The most tokens that a response can have beyond the count of its last checkpoint: those of a lease and a checkpoint
 * interval, and 50 more for a slow machine.
 */
const beyond_max = tokensPerSecond * (lease_s + checkpoint_s) + 50;

/**
 * The most tokens that a response may still get after it was cancelled at another node, if its own node was frozen or
 * learned of that late.
 */
const afterCancel_max = tokensPerSecond;

/**
 * Checks a background response that did not complete. It is charged for the text that its GET returns; with a key the
 * charge may be lower, because the repeat of the request is charged. If Redis loses its data, later reads lack that
 * text, so the longest read after the end is the one compared. Text written between that read and the loss was read by
 * nobody.
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
  // The response's node may have died between the end of the response and its settlement. Then another node's recovery
  // settled it, with a lower charge or none.
  const mayBeFree = charges.some(({ recovered }) => recovered);
  if (end?.status === "completed" && !mayBeFree && one?.output_tokens !== end.outputTokens)
    broken.push(`it says ${end.outputTokens} tokens, and is charged ${one?.output_tokens}`);
  if (hasKey && one?.recovered) broken.push("a key was charged by a recovery");
  return broken;
}
