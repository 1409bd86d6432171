/** Reads the secrets of keys that exist, in pieces, for a node that has just started. */

/** How many first bytes of a hash stand for the whole hash. */
export const fingerprint_bytes = 8;

export interface ExistingSecretsPiece {
  /** The first bytes of the hash of each usable secret, one after another. */
  fingerprints: Uint8Array;
  /** The start of the next piece; null after the last one. */
  next: string | null;
}

export interface ExistingSecretsStore {
  /** Reads a piece. The keys that were created last come first. Revoked ones are left out. */
  piece(from: string | null): Promise<ExistingSecretsPiece>;
}
