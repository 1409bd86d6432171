/** Observers of the stores' answers and connections. */

export type StoreName = "postgres" | "embedded" | "redis";

export interface StoreWatcher {
  /** A statement or command was answered after `ms`. `failure`: what failed; null: nothing did. */
  answered(store: StoreName, ms: number, failure: "connection" | "statement" | null): void;
  /** A connection was opened. */
  opened(store: StoreName): void;
  /** A connection failed: it could not be made, or ended without being closed here. */
  lost(store: StoreName): void;
}

/** How connections are used at one moment. */
export interface ConnectionsInUse {
  store: StoreName;
  idle: number;
  /** The connections that wait for an answer, or are in a transaction. */
  busy: number;
  /** The statements and transactions that wait for a connection. */
  waiting: number;
}
