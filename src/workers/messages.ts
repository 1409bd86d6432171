/**
 * WORKERS: one node as several processes that share its ports, and the supervisor that starts, watches and replaces them.
 * Why: docs/decisions/2026-11-22-workers.md
 *
 * This file: what they say to each other, over the channel that a process has to its parent. Pure.
 */
import type { RouteView } from "../routing/view.ts";
import type { Format, Told } from "../telemetry/text.ts";

/** The contents of sluice.yaml. Workers get the bytes that the supervisor has read, and do not read the file themselves. */
export type FileRead = { bytes: Uint8Array | null } | { code: string };

/** How the node is, as the supervisor last heard. */
export interface NodeState {
  wanted: number;
  /** Those that accept connections. */
  serving: number;
  /** Workers that ended unasked. */
  deaths: number;
  /** The problems that keep workers from exact admission. */
  failing: { worker: number; problem: string }[];
  /** Open requests of a worker that serves, on average. */
  open_mean: number;
}

/** Routes as one worker sees them: breakers, queues and connections are a process's own. */
export type WorkerRoute = RouteView & { worker: number };

/** From the supervisor. */
export type Order =
  | { order: "begin"; workers: number; port: number; operatorPort: number | null; file: FileRead }
  | { order: "reload"; round: number; file: FileRead }
  /** Over a reload: what speaks against it, anywhere. */
  | { order: "verdict"; round: number; problems: readonly string[] }
  | { order: "tell"; question: number; what: "values" | "routes" }
  | { order: "answer"; question: number; answer: string | WorkerRoute[] }
  | { order: "know"; node: NodeState }
  | { order: "stop"; signal: NodeJS.Signals }
  /** Waits for nothing any more. */
  | { order: "hurry" };

/** From a worker. */
export type Word =
  | { word: "here" }
  | { word: "serving"; url: string }
  /** Each second: that it lives, what keeps it from admitting, and how many requests it had open in that second. */
  | { word: "well"; problem: string | null; open: number }
  | { word: "vote"; round: number; problems: readonly string[] }
  | { word: "told"; question: number; told: Told[] | RouteView[] }
  /** Asks on behalf of a client of the node. */
  | { word: "asks"; question: number; what: Format | "routes" };
