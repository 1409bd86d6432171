/**
 * Reasoning of engines that sign nothing is shown to Messages clients with this constant for a signature, since several
 * of them forget reasoning that has none. It proves nothing; sent back, it says that there never was a signature.
 */
export const unsigned = "c2VydmljZTp1bnNpZ25lZA==";

/** The signature as the centre keeps it: byte for byte, except that ours is none. */
export function signatureOf(wire: string | null | undefined): string | undefined {
  return wire === null || wire === unsigned ? undefined : wire;
}
