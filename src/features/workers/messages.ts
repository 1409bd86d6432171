/**
 * WORKERS: one node as several processes that share its ports, and the supervisor that starts, watches and replaces
 * them. Why: docs/design/service.md, Workers. This file has their messages, over the channel that a process has to
 * its parent. Pure.
 */

import type { Format, Told } from "../../core/http/observer.ts";
import type { RouteView } from "../../core/routing/view.ts";
import type { NodeIdentity } from "../../core/store/fleet.ts";

/** The contents of sluice.yaml. Workers get the bytes that the supervisor has read, and do not read the file themselves. */
export type FileRead = { bytes: Uint8Array | null } | { code: string };

/** The state of the node, as the supervisor last heard. */
export interface NodeState {
  wanted: number;
  /** The workers that accept connections. */
  serving: number;
  /** The workers that ended unexpectedly. */
  deaths: number;
  /** The problems that keep workers from exact admission. */
  failing: { worker: number; problem: string }[];
  /** Open requests of a worker that serves, on average. */
  open_mean: number;
}

/** Routes as one worker sees them: breakers, queues and connections are a process's own. */
export type WorkerRoute = RouteView & { worker: number };

/** Messages from the supervisor. */
export type Order =
  | {
      order: "begin";
      identity: NodeIdentity;
      workers: number;
      port: number;
      operatorPort: number | null;
      /** Whether others serve already: this one is started again if it ends. */
      isReplaced: boolean;
      file: FileRead;
    }
  | { order: "reload"; round: number; file: FileRead }
  /** The result of a vote over a reload: the objections of any worker. */
  | { order: "verdict"; round: number; problems: readonly string[] }
  | { order: "tell"; question: number; what: "values" | "routes" }
  | { order: "answer"; question: number; answer: string | WorkerRoute[] }
  | { order: "know"; node: NodeState }
  | { order: "stop"; signal: NodeJS.Signals }
  /** Stop at once, without waiting for anything. */
  | { order: "hurry" };

/** Messages from a worker. */
export type Word =
  | { word: "here" }
  | { word: "serving"; url: string }
  /** Sent each second: a sign of life, the reason why it cannot admit, and its open requests in that second. */
  | { word: "well"; problem: string | null; open: number }
  | { word: "vote"; round: number; problems: readonly string[] }
  | { word: "told"; question: number; told: Told[] | RouteView[] }
  /** A question on behalf of a client of the node. */
  | { word: "asks"; question: number; what: Format | "routes" };
