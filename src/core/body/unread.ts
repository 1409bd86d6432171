/**
 * Reads and discards the bytes that a request still sends when its answer is ready, before the answer is sent. Many
 * clients write a whole body before they read anything, and get EPIPE instead of a refusal if the connection closes
 * meanwhile.
 */

import type { Signal } from "../time/cancellation.ts";
import { type ReadingBounds, readPieces, release } from "./pieces.ts";

export interface UnreadBodies {
  /**
   * Resolves with whether the body has been read to its end, by this call or before. If not, the connection has to be
   * closed. Never rejects.
   */
  discard(request: Request, address: string, signal: Signal): Promise<boolean>;
}

interface UnreadLimits extends ReadingBounds {
  readings_max: number;
  readings_of_one_address_max: number;
}

/** Twice the limit of a body, so that the client of a body that is somewhat too large still gets an answer. */
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
    // A small body that has arrived together with the request's head does not count among the bodies that are read at
    // the same time.
    if (await endsAtOnce(reading)) return reading;
    if (!places.take(address)) work.abort("too many are read");
    else void reading.finally(() => places.free(address));
    return reading;
  }

  return {
    async discard(request, address, signal) {
      const { body } = request;
      // A body that has been read stays locked, unless its reader gave up half-way. The runtime gives GET and HEAD no
      // body.
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

/** Limits how many bodies are read at the same time, in all and for one address. */
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
