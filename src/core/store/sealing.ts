/**
 * SEALING: encrypts small secrets for the store. Implemented by src/config/sealed.ts, with the keys of
 * SLUICE_SECRET_KEY.
 */
export interface Sealing {
  /** Encrypts a secret. `about`: names the place where the secret is stored, such as `refresh_token/<id>`. */
  seal(secret: string, about: string): Uint8Array;
  /**
   * Decrypts a secret. Null if the sealed bytes were changed, were sealed for another place (`about`), or were sealed
   * with a key that is no longer configured.
   */
  open(sealed: Uint8Array, about: string): string | null;
  /**
   * Whether the secret was sealed with another key than the first of the configured keys, which seals new secrets. The
   * secret should then be sealed again, so that the old key can be removed.
   */
  isOutdated(sealed: Uint8Array): boolean;
}
