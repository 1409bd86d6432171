// The interface of an incident: how it is caused, which alerts it makes fire, and the signs that their sections of the
// runbook name.

import { until } from "../../test/harness/until.ts";
import type { Node, Site } from "./site.ts";

export interface Incident {
  what: string;
  /** The alerts that must fire during the incident. */
  alerts: string[];
  begin(site: Site): Promise<Underway>;
}

export interface Underway {
  /**
   * The titles of the notices that arrive once in each channel during the incident, and after its end. Absent if it
   * causes none.
   */
  notices?: { begun: string[]; over: string[] };
  /**
   * Called while the alerts are firing. Returns for each alert the sign that its section of the runbook names, and
   * whether the sign shows.
   */
  signs(): Promise<Record<string, Sign>>;
  /** Ends the incident; resolves when everything works again. */
  mend(): Promise<void>;
}

export type Sign = [sign: string, shows: boolean];

export const logs = ({ log }: { log(): string }, ...events: string[]) =>
  events.some((event) => log().includes(`"event":"${event}"`));

export async function has({ prometheus }: Pick<Site, "prometheus">, query: string): Promise<boolean> {
  return (await prometheus.query(query)).length > 0;
}

/** Waits until this many requests of the node are at engines. */
export function inHand(site: Pick<Site, "prometheus">, { target }: Node, count: number): Promise<void> {
  const query = `sum(upstream_requests_in_flight{instance="${target}"}) >= ${count}`;
  return until(() => has(site, query), 30_000, `${count} requests in hand`);
}
