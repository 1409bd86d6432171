/**
 * SEALING: encrypts small secrets for the store. Implemented by src/config/sealed.ts, with the keys of
 * SLUICE_SECRET_KEY.
 */
export interface Sealing {
  /** Encrypts a secret. `about`: names the place where the secret is stored, such as `refresh_token/<id>`. */
  seal(secret: string, about: string): Uint8Array;
  /**
   * The secret; null if the sealed text was changed, belongs to another place, or was sealed with a key that is no
   * longer configured.
   */
  open(sealed: Uint8Array, about: string): string | null;
  /**
   * Whether the secret was sealed with another key than the first. It should then be sealed again, so that the old key
   * can be removed.
   */
  isOutdated(sealed: Uint8Array): boolean;
}
