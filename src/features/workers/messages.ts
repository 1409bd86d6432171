/**
 * WORKERS: one node as several processes that share its ports, and the supervisor that starts, watches and replaces
 * them. Why: docs/design/service.md, Workers. This file has their messages, over the channel that a process has to
 * its parent. Pure.
 */

import type { Format, Told } from "../../core/http/observer.ts";
import type { RouteView } from "../../core/routing/view.ts";
import type { NodeIdentity } from "../../core/store/fleet.ts";

/**
 * The contents of sluice.yaml, and when they were changed, in milliseconds since the epoch; both null if there is no
 * file. `code`: why it cannot be read. The supervisor reads the file and sends it to the workers, which do not read it
 * themselves.
 */
export type FileRead = { bytes: Uint8Array | null; changedAt_ms: number | null } | { code: string };

/**
 * The settings that take effect only at a start, as they were when the node started. A worker in the place of another
 * one serves with these settings, as the others do, whatever the files say by then. Their form is known to
 * src/config alone.
 */
export type StartParts = object;

/** The state of the node, as the supervisor knows it. */
export interface NodeState {
  wanted: number;
  /** The number of workers that accept connections. */
  serving: number;
  /** The number of workers that ended unexpectedly. */
  deaths: number;
  /** The reasons why workers cannot admit requests. */
  failing: { worker: number; problem: string }[];
  /** The open requests of a serving worker, on average. */
  open_mean: number;
}

/** A route as one worker sees it: breakers, queues and connections belong to a process. */
export type WorkerRoute = RouteView & { worker: number };

/** Messages from the supervisor to a worker. */
export type Order =
  | {
      order: "begin";
      identity: NodeIdentity;
      workers: number;
      port: number;
      operatorPort: number | null;
      /** Whether other workers serve already, so that this one is replaced if it ends. */
      isReplaced: boolean;
      file: FileRead;
      startParts: StartParts;
    }
  | { order: "reload"; round: number; file: FileRead }
  /** The result of a vote over a reload: the objections of all workers. */
  | { order: "verdict"; round: number; problems: readonly string[] }
  | { order: "tell"; question: number; what: "values" | "routes" }
  | { order: "answer"; question: number; answer: string | WorkerRoute[] }
  | { order: "know"; node: NodeState }
  | { order: "stop"; signal: NodeJS.Signals }
  /** Stop immediately, without waiting for requests. */
  | { order: "hurry" };

/** Messages from a worker to the supervisor. */
export type Word =
  | { word: "here" }
  | { word: "serving"; url: string }
  /**
   * Sent each second as a sign of life, with the reason why the worker cannot admit requests (null if it can), and the
   * number of its open requests.
   */
  | { word: "well"; problem: string | null; open: number }
  | { word: "vote"; round: number; problems: readonly string[] }
  | { word: "told"; question: number; told: Told[] | RouteView[] }
  /** A question to all workers for their metrics or their routes, on behalf of a client that asked this worker. */
  | { word: "asks"; question: number; what: Format | "routes" };
