/**
 * The bytes that a request still sends when its answer is ready are read and discarded before the answer is sent. Many
 * clients write a whole body before they read anything, and get EPIPE in place of a refusal when the connection closes
 * meanwhile.
 */

import type { Signal } from "../time/cancellation.ts";
import { type ReadingBounds, readPieces } from "./pieces.ts";
import { release } from "./release.ts";

export interface UnreadBodies {
  /** Whether the body has been read to its end, here or before; where not, the connection has to be closed. Never rejects. */
  discard(request: Request, address: string, signal: Signal): Promise<boolean>;
}

export interface UnreadLimits extends ReadingBounds {
  readings_max: number;
  readings_of_one_address_max: number;
}

/** Twice what a body may be: what is somewhat too large can be told so. */
export function unreadLimits(body_bytes_max: number): UnreadLimits {
  return {
    bytes_max: Math.max(64 * 1024 * 1024, 2 * body_bytes_max),
    ms: 5_000,
    readings_max: 64,
    readings_of_one_address_max: 4,
  };
}

export function unreadBodies(limits: UnreadLimits): UnreadBodies {
  const places = placesFor(limits);

  async function readAway(body: ReadableStream<Uint8Array>, address: string, signal: Signal) {
    const work = signal.child();
    const reading = readPieces(body, limits, release, work).finally(() => work.detach());
    // Small bodies have arrived with their head: they take nobody's place.
    if (await endsAtOnce(reading)) return reading;
    if (!places.take(address)) work.abort("too many are read");
    else void reading.finally(() => places.free(address));
    return reading;
  }

  return {
    async discard(request, address, signal) {
      const { body } = request;
      // Whoever has read a body keeps it locked, unless it gave up half-way; the runtime gives GET and HEAD none.
      if (!body || body.locked) return true;
      if (Number(request.headers.get("content-length") ?? 0) > limits.bytes_max) return false;
      return (await readAway(body, address, signal)) === "whole";
    },
  };
}

function endsAtOnce(work: Promise<unknown>): Promise<boolean> {
  const turn = new Promise<false>((resolve) => setImmediate(resolve, false));
  return Promise.race([work.then(() => true), turn]);
}

/** Places for readings: in all, and for one address. */
function placesFor({ readings_max, readings_of_one_address_max }: UnreadLimits) {
  const taken = new Map<string, number>();
  let all = 0;
  return {
    take(address: string): boolean {
      const own = taken.get(address) ?? 0;
      if (all >= readings_max || own >= readings_of_one_address_max) return false;
      taken.set(address, own + 1);
      all++;
      return true;
    },
    free(address: string): void {
      const own = taken.get(address) ?? 0;
      if (own > 1) taken.set(address, own - 1);
      else taken.delete(address);
      all--;
    },
  };
}
