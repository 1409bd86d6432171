// Judges background responses: each has one end, which no node tells otherwise later; what is charged is what it says it
// used; and a key is charged once.

import { type BackgroundClient, isOver } from "./background-client.ts";
import type { Befallen, Charge } from "./repeat-judge.ts";

const statuses = new Set(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]);

/** Sentences, each of which says what was broken. */
export function objectionsToBackground(
  client: BackgroundClient,
  charges: readonly Charge[],
  { isForgotten }: Befallen,
): string[] {
  // A failover may have forgotten the response itself.
  if (isForgotten) return [];
  const { marker, ids, told, stream, hasKey } = client;
  const said = told
    .filter(({ status }, index) => status !== told[index - 1]?.status)
    .map(({ status, node, error }) => `${status} at ${node}${error ? `: ${error}` : ""}`);
  const name = `${marker} (background${stream ? ", streamed" : ""}${hasKey ? ", with a key" : ""}, ${ids.join(", ")})`;
  return [...ofTold(client), ...ofCharges(client, charges)].map((broken) => `${name}: ${broken} [${said.join(", ")}]`);
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
  // Its node may have died between the end of the response and its settlement.
  const mayBeFree = charges.some(({ recovered }) => recovered);
  if (end?.status === "completed" && !mayBeFree && one?.output_tokens !== end.outputTokens)
    broken.push(`it says ${end.outputTokens} tokens, and is charged ${one?.output_tokens}`);
  if (hasKey && one?.recovered) broken.push("a key was charged by a recovery");
  return broken;
}
