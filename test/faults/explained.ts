// Adds what a reader of a failed run needs to find the cause of the judges' objections.

import type { Spell } from "./injector.ts";
import type { Client } from "./repeat-client.ts";
import type { Charge } from "./repeat-judge.ts";
import type { Rig } from "./rig.ts";

export interface Explanation {
  /** The IDs of the client's requests and responses. */
  ids: readonly string[];
  charged: readonly Charge[];
  client: Pick<Client, "began_ms">;
  spells: readonly Spell[];
  /**
   * One entry for each time that the client read the background response: the milliseconds since the client began, and
   * the number of tokens that the text had then.
   */
  texts?: readonly (readonly [number, number])[];
}

/** How long a request may run on after its client has left, in milliseconds. */
export const after_ms = 2_000;

/**
 * The objections to a client, each with the records and the log lines of its requests, and with the faults that were
 * injected since it began, so that the cause can be found.
 */
export function explained(
  objections: readonly string[],
  { nodes }: Rig,
  { ids, charged, client, spells, texts }: Explanation,
): string[] {
  if (objections.length === 0) return [];
  const logged = [...new Set(ids)].filter((id) => id !== "").flatMap((id) => warningsOf(id, nodes));
  const broken = spells
    .filter(({ to_ms }) => to_ms >= client.began_ms - after_ms)
    .map(({ breaks, from_ms, to_ms }) => [breaks.join(), from_ms - client.began_ms, to_ms - client.began_ms]);
  const why = [`records: ${JSON.stringify(charged)}`, ...logged, `broken: ${JSON.stringify(broken)}`];
  if (texts) why.push(`read: ${JSON.stringify(texts)}`);
  return objections.map((objection) => [objection, ...why].join("\n    "));
}

/** The warnings about a request in the logs of all nodes, each preceded by the name of its node. */
export function warningsOf(requestId: string, nodes: Rig["nodes"]): string[] {
  return nodes.flatMap((node) => node.warnedOf(requestId).map((line) => `${node.name}: ${line}`));
}
