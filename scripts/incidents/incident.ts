// What an incident is: what goes wrong, which alerts fire, and what their sections of the runbook say to look at.

import { until } from "../../test/harness/until.ts";
import type { Node, Site } from "./site.ts";

export interface Incident {
  what: string;
  /** The alerts that fire while the incident lasts. */
  alerts: string[];
  begin(site: Site): Promise<Underway>;
}

export interface Underway {
  /**
   * The titles of the notices that arrive once in each channel while the incident lasts, and after its end. Absent: it
   * has none.
   */
  notices?: { begun: string[]; over: string[] };
  /**
   * Called while the alerts fire. Returns for each alert the sign that its section of the runbook names, and whether it
   * shows.
   */
  signs(): Promise<Record<string, Sign>>;
  /** Ends the incident; resolves when nothing is broken any more. */
  mend(): Promise<void>;
}

export type Sign = [sign: string, shows: boolean];

export const logs = ({ log }: { log(): string }, ...events: string[]) =>
  events.some((event) => log().includes(`"event":"${event}"`));

export async function has({ prometheus }: Pick<Site, "prometheus">, query: string): Promise<boolean> {
  return (await prometheus.query(query)).length > 0;
}

/** Waits until the node has this many requests in progress at engines. */
export function inHand(site: Pick<Site, "prometheus">, { target }: Node, count: number): Promise<void> {
  const query = `sum(upstream_requests_in_flight{instance="${target}"}) >= ${count}`;
  return until(() => has(site, query), 30_000, `${count} requests in hand`);
}
