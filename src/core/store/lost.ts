/**
 * Records that were confirmed to nodes and that the store no longer has: docs/design/metering.md, A store that wakes up
 * in the past.
 */

/** A settlement that the store confirmed. */
export interface Confirmed {
  requestId: string;
  organizationId: string;
  charged: number;
}

/** A server of the store, and its timeline: a replica that takes over begins another one. */
export interface StoreServer {
  server: string;
  timeline: number;
}

export interface Look {
  /** The identity of the database, the same in all its copies. */
  ledgerId: string;
  /** Null if the server does not say. */
  place: StoreServer | null;
  /** Where the database was last seen, if it has moved since and nobody has recorded that. */
  movedFrom: StoreServer | null;
  /** Whether the store has the requested record; true if none was requested. */
  has: boolean;
}

export interface LostRecords {
  /** One short statement. */
  look(requestId: string | null): Promise<Look>;
  /** Returns the receipts that the store does not have and that nobody had recorded as lost. They are recorded now. */
  compare(
    confirmed: readonly Confirmed[],
    place: StoreServer | null,
  ): Promise<{ absent: Confirmed[]; noted: Confirmed[] }>;
}

/** A memory beside the store. It may lose entries. */
export interface ReceiptMemory {
  remember(ledgerId: string, confirmed: readonly Confirmed[]): Promise<void>;
  recall(ledgerId: string): Promise<Confirmed[]>;
}

/** The losses that were recorded within a year. */
export interface Lost {
  receipts: number;
  nanos: number;
  /** Null if there is none. */
  noticedAt: Date | null;
  /** The last time that the database was found on another server or timeline; null: never. */
  movedAt: Date | null;
}
