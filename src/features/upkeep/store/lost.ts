/**
 * Records that the store had confirmed to nodes and no longer has, because it was restored or failed over:
 * docs/design/metering.md, A store that wakes up in the past.
 */

/** A settlement that the store confirmed. */
export interface Confirmed {
  requestId: string;
  organizationId: string;
  charged: number;
}

/** A server of the store, and its timeline. A replica that is promoted begins a new timeline. */
export interface StoreServer {
  server: string;
  timeline: number;
}

export interface Look {
  /** The identity of the database, the same in all its copies. */
  ledgerId: string;
  /** The database server; null if the database does not report its identity. */
  place: StoreServer | null;
  /** The server on which the database was seen before, if it has moved and nobody has recorded the move; else null. */
  movedFrom: StoreServer | null;
  /** Whether the store has the record of the request that the caller named; true if the caller named no request. */
  has: boolean;
}

export interface LostReceipts {
  /** Asks the store for its server, and whether it has the record of a request. One short statement. */
  look(requestId: string | null): Promise<Look>;
  /**
   * Returns the settlements that the store does not have (`absent`), and those of them that are now recorded as lost
   * for the first time (`noted`).
   */
  compare(
    confirmed: readonly Confirmed[],
    place: StoreServer | null,
  ): Promise<{ absent: Confirmed[]; noted: Confirmed[] }>;
}

/** Remembers confirmed settlements outside the store. It may lose entries. */
export interface ReceiptMemory {
  remember(ledgerId: string, confirmed: readonly Confirmed[]): Promise<void>;
  recall(ledgerId: string): Promise<Confirmed[]>;
}

/** The losses that were recorded within a year. */
export interface RecordedLosses {
  receipts: number;
  nanos: number;
  /** When the last loss was noticed; null: no loss is recorded. */
  noticedAt: Date | null;
  /** When the database was last found on another server or timeline; null: never. */
  movedAt: Date | null;
}
