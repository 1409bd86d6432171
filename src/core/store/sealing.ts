/** SEALING of small secrets at rest. Implemented by src/core/auth/sealed.ts, with the keys of SLUICE_SECRET_KEY. */
export interface Sealing {
  /** `about`: names the place where the secret is stored, such as `refresh_token/<id>`. */
  seal(secret: string, about: string): Uint8Array;
  /** The secret; null if it was changed, belongs to another place, or was sealed with a key that is gone. */
  open(sealed: Uint8Array, about: string): string | null;
  /**
   * Whether another key than the first sealed it. It should then be sealed again, so that the old key can be removed.
   */
  isOutdated(sealed: Uint8Array): boolean;
}
