/** Observes how the stores answer, and their connections. */

export type StoreName = "postgres" | "embedded" | "redis";

export interface StoreWatcher {
  /** A statement or command ended after `ms`. `failure`: what failed; null: nothing failed. */
  answered(store: StoreName, ms: number, failure: "connection" | "statement" | null): void;
  opened(store: StoreName): void;
  /** A connection failed: it could not be made, or it ended although this process had not closed it. */
  lost(store: StoreName): void;
}

export interface ConnectionsInUse {
  store: StoreName;
  idle: number;
  /** The number of connections that wait for an answer, or are in a transaction. */
  busy: number;
  waiting: number;
}
