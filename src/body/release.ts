/** Frees the memory of bytes that nobody needs now: until the collector came, hundreds of MiB would pile up. */
export function release({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
}
