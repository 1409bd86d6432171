/**
 * The signature of reasoning that its engine did not sign. Several Messages clients drop reasoning without a signature. This
 * constant proves nothing, and is removed again when a client sends it back.
 */
export const unsigned = "c2VydmljZTp1bnNpZ25lZA==";

/** The signature unchanged; undefined if it is the constant `unsigned`. */
export function signatureOf(wire: string | null | undefined): string | undefined {
  return wire === null || wire === unsigned ? undefined : wire;
}
