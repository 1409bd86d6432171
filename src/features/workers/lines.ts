/**
 * Joins the output of several processes into one stream of whole lines: a long write to a pipe may be interleaved with
 * the write of another process.
 */

const newline = 10;
/** The longest line; a longer one is passed on in parts. */
const held_bytes_max = 256 * 1024;

/** Passes on whole lines as they arrive, and the rest at the end. */
export async function wholeLines(from: AsyncIterable<Uint8Array>, write: (lines: Uint8Array) => void): Promise<void> {
  let held: Uint8Array[] = [];
  let held_bytes = 0;
  const flush = (rest: Uint8Array) => {
    const all = held_bytes > 0 ? Buffer.concat([...held, rest]) : rest;
    [held, held_bytes] = [[], 0];
    if (all.byteLength > 0) write(all);
  };
  for await (const chunk of from) {
    const end = chunk.lastIndexOf(newline) + 1;
    if (end > 0) flush(chunk.subarray(0, end));
    if (end < chunk.byteLength) {
      held.push(chunk.slice(end));
      held_bytes += chunk.byteLength - end;
    }
    if (held_bytes > held_bytes_max) flush(new Uint8Array());
  }
  flush(new Uint8Array());
}
