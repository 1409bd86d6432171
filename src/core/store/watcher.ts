/** Observers of the stores' answers. */

export type StoreName = "postgres" | "embedded" | "redis";

export interface StoreWatcher {
  /** A statement or command was answered after this time. `failure`: the part that failed; null: none did. */
  answered(store: StoreName, ms: number, failure: "connection" | "statement" | null): void;
  /** A connection was opened. */
  opened(store: StoreName): void;
  /** A connection ended that nobody had closed, or could not be made. */
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

export const nobody: StoreWatcher = { answered() {}, opened() {}, lost() {} };
