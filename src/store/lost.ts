/**
 * Records that nodes had confirmed and the store no longer has: docs/design/metering.md, A store that wakes up in the
 * past.
 */

/** A settlement that the store confirmed. */
export interface Confirmed {
  requestId: string;
  organizationId: string;
  charged: number;
}

/** A server of the store, and which of its timelines: a replica that takes over begins another. */
export interface Place {
  server: string;
  timeline: number;
}

export interface Look {
  /** Names the book, in all its copies. */
  ledgerId: string;
  /** Null where the server does not say. */
  place: Place | null;
  /** The place where the book was last seen, if it has moved since and nobody has noted it. */
  movedFrom: Place | null;
  /** Whether the store has the record that was asked for; true where none was. */
  has: boolean;
}

export interface LostReceipts {
  /** One short statement. */
  look(requestId: string | null): Promise<Look>;
  /** Answers which of them the store does not have, and of these the ones that nobody had noted as lost: they are now. */
  compare(confirmed: readonly Confirmed[], place: Place | null): Promise<{ absent: Confirmed[]; noted: Confirmed[] }>;
}

/** Remembers beside the store; it may forget. */
export interface ReceiptMemory {
  remember(ledgerId: string, confirmed: readonly Confirmed[]): Promise<void>;
  recall(ledgerId: string): Promise<Confirmed[]>;
}

/** Losses that were noted within a year. */
export interface Lost {
  receipts: number;
  units: number;
  /** Null: none. */
  noticedAt: Date | null;
  /** The last time that the book was found on another server or timeline; null: never. */
  movedAt: Date | null;
}
