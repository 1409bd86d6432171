/** Between two stretches of work on a large body others get their turn: one request must not hold up the rest. */

/** Below this a body is worked through in one go. A yield costs little, but small bodies are nearly all there are. */
const small_bytes = 256 * 1024;

export async function breather(bytes: number): Promise<void> {
  if (bytes > small_bytes) await new Promise<void>((resolve) => setImmediate(resolve));
}
