/** An observer of the stores' answers. */

export type StoreName = "postgres" | "embedded" | "redis";

export interface StoreWatcher {
  /** A statement or command was answered after so long. `failure`: by whose fault it was not. */
  answered(store: StoreName, ms: number, failure: "connection" | "statement" | null): void;
  /** A connection was begun. */
  opened(store: StoreName): void;
  /** A connection ended that nobody had closed, or never came about. */
  lost(store: StoreName): void;
}

/** How connections are used, at a moment. */
export interface ConnectionsInUse {
  store: StoreName;
  idle: number;
  /** They wait for an answer, or are in a transaction. */
  busy: number;
  /** Statements and transactions that wait for one. */
  waiting: number;
}

export const nobody: StoreWatcher = { answered() {}, opened() {}, lost() {} };
