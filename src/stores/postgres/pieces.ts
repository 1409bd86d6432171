/**
 * Does long work in many short statements, and adapts the size of one to the time that it takes: the number of
 * transactions whose records it reads, for example.
 */
import { DatabaseError } from "./database-error.ts";

export interface PieceTimes {
  quick_ms: number;
  slow_ms: number;
}

const size_min = 100;
const size_max = 100_000;

/** Calls `read` for each piece of the span, in order. */
export async function inPieces<Piece>(
  span: { since: number; until: number },
  times: PieceTimes,
  read: (since: number, until: number) => Promise<Piece>,
  take: (piece: Piece) => void = () => {},
): Promise<void> {
  const next = pacing(times);
  for (let { since } = span; since < span.until; ) {
    await next(async (size) => {
      const until = Math.min(span.until, since + size);
      take(await read(since, until));
      since = until;
    });
  }
}

/**
 * Returns a function that does one piece of the work, in a size that follows from the time that earlier pieces took. If
 * the server ends a statement because it takes too long, the piece is left undone, and the next is smaller. Every
 * piece, however small, takes at least the time of the quickest one. Smaller pieces would not save that time, so it is
 * subtracted before a time is compared with `quick_ms` and `slow_ms`.
 */
export function pacing({ quick_ms, slow_ms }: PieceTimes): (piece: (size: number) => Promise<void>) => Promise<void> {
  let size = size_min;
  let least_ms = Number.POSITIVE_INFINITY;
  return async (piece) => {
    const began_ms = performance.now();
    try {
      await piece(size);
    } catch (error) {
      if (size === 1 || !isTooLong(error)) throw error;
      size = Math.max(1, Math.floor(size / 4));
      return;
    }
    const took_ms = performance.now() - began_ms;
    least_ms = Math.min(least_ms, took_ms);
    if (took_ms - least_ms < quick_ms) size = Math.min(size_max, size * 2);
    if (took_ms - least_ms > slow_ms) size = Math.max(size_min, Math.floor(size / 2));
  };
}

/** Whether the server ended the statement because it took too long. */
export const isTooLong = (error: unknown): boolean => error instanceof DatabaseError && error.code === "57014";
