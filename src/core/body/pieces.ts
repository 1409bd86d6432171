/** Reads a request's body piece by piece, within bounds. It keeps none of it. */
import { Fault } from "../inference/fault.ts";
import type { Signal } from "../time/cancellation.ts";

export interface ReadingBounds {
  bytes_max: number;
  ms: number;
}

/** `whole`: read to its end. `broken_off`: the client left. `stopped`: the signal was aborted. */
export type ReadOutcome = "whole" | "too_large" | "late" | "broken_off" | "stopped";

/** Takes a piece. The next one is read when its promise resolves. A Fault that it throws ends the reading. */
export type TakePiece = (piece: Uint8Array) => void | Promise<void>;

/** Reads a body to one of the outcomes. After `too_large`, or a Fault of `take`, other code may still read the rest. */
export async function readPieces(
  body: ReadableStream<Uint8Array>,
  bounds: ReadingBounds,
  take: TakePiece,
  signal?: Signal,
): Promise<ReadOutcome> {
  if (signal?.aborted) return "stopped";
  const reader = body.getReader();
  let ended: ReadOutcome = "whole";
  const end = (how: ReadOutcome) => {
    ended = how;
    reader.cancel().catch(() => {});
  };
  // The time left to the client. While a piece is scanned, it does not count.
  let left_ms = bounds.ms;
  let reading_since_ms = performance.now();
  let deadline = setTimeout(end, left_ms, "late");
  const listening = signal?.listen(() => end("stopped"));
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (ended !== "whole" || done) return ended;
      bytes += value.byteLength;
      if (bytes > bounds.bytes_max) {
        reader.releaseLock();
        return "too_large";
      }
      const taking = take(value);
      if (!taking) continue;
      clearTimeout(deadline);
      left_ms -= performance.now() - reading_since_ms;
      await taking;
      reading_since_ms = performance.now();
      deadline = setTimeout(end, left_ms, "late");
    }
  } catch (thrown) {
    if (thrown instanceof Fault) {
      reader.releaseLock();
      throw thrown;
    }
    return ended === "whole" ? "broken_off" : ended;
  } finally {
    clearTimeout(deadline);
    listening?.stop();
  }
}

/**
 * As `readPieces`, for a body whose announced size is small and within bounds: the runtime gathers it, in one piece and
 * without a stream.
 */
export async function readAtOnce(request: Request, ms: number, take: TakePiece): Promise<ReadOutcome> {
  const reading = request.bytes();
  const arrived = Bun.peek(reading);
  const whole = arrived instanceof Uint8Array ? arrived : await inTime(reading, ms);
  if (typeof whole === "string") return whole;
  const taking = take(whole);
  if (taking) await taking;
  return "whole";
}

async function inTime(reading: Promise<Uint8Array>, ms: number): Promise<Uint8Array | "late" | "broken_off"> {
  const { promise, resolve } = Promise.withResolvers<Uint8Array | "late" | "broken_off">();
  const deadline = setTimeout(resolve, ms, "late");
  reading.then(resolve, () => resolve("broken_off"));
  const whole = await promise;
  clearTimeout(deadline);
  return whole;
}
