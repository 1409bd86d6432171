/**
 * The limit of an engine that all processes of a fleet share. Each process holds some of the slots for a few seconds,
 * renews them by exchanges, and begins no more requests than it holds: docs/routing.md, One limit for all nodes.
 */

/**
 * A number of requests in each part of a limit: the common part, and the one that is reserved for quiet organizations.
 */
export interface SlotCounts {
  common: number;
  reserved: number;
}

/** The request of one process in an exchange. */
export interface SlotsAsked {
  /** The name of this process's share, which is used once. */
  name: string;
  /** It rises with each exchange of the name, so that a late one changes nothing. */
  number: number;
  /** The limit as this process has it configured. The smallest of the fleet holds. */
  limits: SlotCounts;
  /** The process begins nothing beyond these until it has the answer. */
  held: SlotCounts;
  /** The requests that run, and those that wait. */
  wanted: SlotCounts;
  /** The sum of the weights of the organizations that wait; at least 1. */
  weight: number;
}

export interface SlotsGranted {
  /** The process holds these now; never fewer than it reported as held. */
  held: SlotCounts;
  /** The slots that it should hold. It gives back the rest as soon as its requests end. */
  target: SlotCounts;
  /** The number of processes that share the limit. */
  processes: number;
  /** Whether another process has fewer than it should. */
  isShort: boolean;
}

export interface EngineSlots {
  /** Rejects if the store is away, or if the exchange came too late. */
  exchange(engine: string, asked: SlotsAsked): Promise<SlotsGranted>;
  /** Gives everything back. */
  leave(engine: string, name: string): Promise<void>;
}

/** The store gives the slots of a process to others if it has not heard from it for so long. */
export const slots_lease_ms = 3_000;
/** A process begins nothing this long after it began its last exchange that was answered. */
export const slots_fence_ms = 2_000;
