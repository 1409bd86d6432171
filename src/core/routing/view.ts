/** The state of each route as this process knows it, for operators. */

import type { RouteState } from "./health.ts";

export interface RouteView {
  /** Public model id. */
  model: string;
  /** The upstream's name in the configuration, which its replicas share. */
  upstream: string;
  /** The replica's address, if the upstream's name has several. */
  replica?: string;
  /** The route's state. `drained`: its engine gets no new requests until an operator resumes it. */
  state: RouteState | "drained";
  requests: number;
  tokens: number;
  /** The number of requests that wait for a slot at the engine. A request may wait at several engines. */
  waiting: number;
}
