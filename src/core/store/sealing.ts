/** SEALING: encrypts small secrets for the store, in src/config/sealed.ts, with the keys of SLUICE_SECRET_KEY. */
export interface Sealing {
  /** Encrypts a secret. `about`: names the place where the secret is stored, such as `refresh_token/<id>`. */
  seal(secret: string, about: string): Uint8Array;
  /** Null if the bytes were changed, or were sealed for another place (`about`) or with a key that is gone. */
  open(sealed: Uint8Array, about: string): string | null;
  /** Whether another key than the first configured one sealed the secret, which should then be sealed again. */
  isOutdated(sealed: Uint8Array): boolean;
}
