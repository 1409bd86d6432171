/** Stands for the signature of unsigned reasoning, which clients may drop. It is removed when they send it back. */
export const unsigned = "c2VydmljZTp1bnNpZ25lZA==";

/** The signature unchanged; undefined if it is the constant `unsigned`. */
export function signatureOf(wire: string | null | undefined): string | undefined {
  return wire === null || wire === unsigned ? undefined : wire;
}
