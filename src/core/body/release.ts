/**
 * Frees the memory of bytes that are no longer needed at once: hundreds of MiB would pile up before the garbage
 * collector ran.
 */
export function release({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
}
