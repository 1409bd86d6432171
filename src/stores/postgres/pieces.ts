/**
 * Reads the records of transactions in many short statements, and adapts the number of transactions in one to the time
 * that it takes.
 */
import { DatabaseError } from "./database-error.ts";

export interface PieceTimes {
  quick_ms: number;
  slow_ms: number;
}

const transactions_min = 100;
const transactions_max = 100_000;

/**
 * Calls `read` for each piece, in order. If the server ends a statement because it takes too long, its piece is read
 * again in smaller pieces.
 */
export async function inPieces<Piece>(
  span: { since: number; until: number },
  { quick_ms, slow_ms }: PieceTimes,
  read: (since: number, until: number) => Promise<Piece>,
  take: (piece: Piece) => void = () => {},
): Promise<void> {
  let count = transactions_min;
  for (let { since } = span; since < span.until; ) {
    const until = Math.min(span.until, since + count);
    const began_ms = performance.now();
    let piece: Piece;
    try {
      piece = await read(since, until);
    } catch (error) {
      if (count === 1 || !(error instanceof DatabaseError && error.code === "57014")) throw error;
      count = Math.max(1, Math.floor(count / 4));
      continue;
    }
    const took_ms = performance.now() - began_ms;
    take(piece);
    since = until;
    if (took_ms < quick_ms) count = Math.min(transactions_max, count * 2);
    if (took_ms > slow_ms) count = Math.max(transactions_min, Math.floor(count / 2));
  }
}
