/** Reads the secrets of keys that exist, in pieces, for a node that has just started. */

/** A hash is represented by its first bytes; this is their number. */
export const fingerprint_bytes = 8;

export interface ExistingSecretsPiece {
  /** The first bytes of the hash of each usable secret, one after another. */
  fingerprints: Uint8Array;
  /** The start of the next piece; null after the last one. */
  next: string | null;
}

export interface ExistingSecretsStore {
  /**
   * Reads the piece that starts at `from`; null: the first. The keys that were created last come first. Revoked ones
   * are left out.
   */
  piece(from: string | null): Promise<ExistingSecretsPiece>;
}
