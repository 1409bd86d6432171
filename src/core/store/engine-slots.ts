/**
 * The limit of an engine that all processes of a fleet share. Each process holds some of the slots for a few seconds,
 * renews them by exchanges (messages to the store and their answers), and runs no more requests than it holds slots
 * for: docs/routing.md, One limit for all nodes.
 */

/**
 * A number of requests in each part of a limit: the common part, and the part that is reserved for organizations with
 * few running requests.
 */
export interface SlotCounts {
  common: number;
  reserved: number;
}

/** The message of one process to the store when the processes share out the slots of an engine. */
export interface SlotsAsked {
  /** The name of this process's share. A name is never used again. */
  name: string;
  /**
   * The number of the exchange, which rises with each exchange under this name. An exchange that arrives after a later
   * one therefore changes nothing.
   */
  number: number;
  /** The limits that this process has configured. The smallest in the fleet applies. */
  limits: SlotCounts;
  /** The slots that the process holds. It begins no request beyond them until it has the answer. */
  held: SlotCounts;
  /** The number of the process's running and waiting requests together. */
  wanted: SlotCounts;
  /** The sum of the weights of the organizations with waiting requests; at least 1. */
  weight: number;
}

export interface SlotsGranted {
  /** The slots that the process holds now; never fewer than it reported as held. */
  held: SlotCounts;
  /** The slots that the process should hold. It gives back the rest as soon as its requests end. */
  target: SlotCounts;
  processes: number;
  /** Whether another process has fewer slots than its target. */
  isShort: boolean;
}

export interface EngineSlots {
  /** Rejects if the store does not answer, or if it already knows a later exchange of this process. */
  exchange(engine: string, asked: SlotsAsked): Promise<SlotsGranted>;
  /** Gives back all slots of the process's share `name`. */
  leave(engine: string, name: string): Promise<void>;
}

/** If a process makes no exchange for this long, the store gives its slots to others. */
export const slots_lease_ms = 3_000;
/** A process begins no request once this time has passed since the start of its last answered exchange. */
export const slots_fence_ms = 2_000;
