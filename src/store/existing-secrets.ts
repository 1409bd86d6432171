/** Which secrets of keys there are, in pieces: for a node that has just started, and knows none of them yet. */

/** The bytes of a hash that stand for the whole one. */
export const fingerprint_bytes = 8;

export interface ExistingSecretsPiece {
  /** The first bytes of the hash of each secret that may be used, one after the other. */
  fingerprints: Uint8Array;
  /** The start of the next piece; null after the last one. */
  next: string | null;
}

export interface ExistingSecretsStore {
  /** Keys that were made last come first. Those that are revoked are left out. */
  piece(from: string | null): Promise<ExistingSecretsPiece>;
}
