/**
 * Reads a request's body piece by piece, within bounds. Keeps no part of the body.
 *
 * Unpacks compressed bodies piece by piece, so that never more of a body is unpacked than is scanned, and a body never
 * grows to many times its size. Faults: invalid_value, invalid_json, request_too_large, and those that `take` throws.
 */

import zlib from "node:zlib";
import { Fault } from "../inference/fault.ts";
import type { Signal } from "../time/cancellation.ts";

export interface ReadingBounds {
  bytes_max: number;
  ms: number;
}

/**
 * How the reading of a body ended. `whole`: it was read to its end. `late`: its time was over. `broken_off`: the client
 * left. `stopped`: the signal was aborted.
 */
type ReadOutcome = "whole" | "too_large" | "late" | "broken_off" | "stopped";

/** Takes a piece. The next piece is read when the promise resolves. A Fault that is thrown ends the reading. */
export type TakePiece = (piece: Uint8Array) => void | Promise<void>;

/**
 * Reads a body, and returns how the reading ended. After `too_large`, or a Fault of `take`, other code may still read
 * the rest.
 */
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
  // The time that the client still has to send its body. The time in which a piece is scanned does not count.
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

/** An announced body up to this size is gathered by the runtime, which copies less of it. */
const gathered_bytes_max = 2 * 1024 * 1024;

/** Reads a whole body of this announced size (0: not announced). Throws the Fault of a body that is not read to its end. */
export async function readInto(
  request: Pick<Request, "body" | "bytes">,
  announced: number,
  { bytes_max, ms }: ReadingBounds,
  take: TakePiece,
): Promise<void> {
  const isGathered = announced > 0 && announced <= gathered_bytes_max;
  // The runtime makes a stream of a body only if it is asked for one.
  const stream = isGathered ? null : request.body;
  if (!isGathered && !stream) return;
  const reading = await (stream ? readPieces(stream, { bytes_max, ms }, take) : readAtOnce(request, ms, take));
  if (reading === "too_large") throw tooLarge(bytes_max);
  if (reading === "late") throw unfinished(ms);
  if (reading !== "whole") throw new Fault("invalid_json", "The request body ended early. Send it again.");
}

function unfinished(ms: number): Fault {
  return new Fault(
    "invalid_json",
    `The request body did not arrive within ${Math.round(ms / 1000)} seconds. Send it again.`,
    { headers: { connection: "close" } },
  );
}

/**
 * As `readPieces`, for a body whose announced size is small and within bounds: the runtime gathers it, in one piece and
 * without a stream.
 */
export async function readAtOnce(request: Pick<Request, "bytes">, ms: number, take: TakePiece): Promise<ReadOutcome> {
  const reading = request.bytes();
  const whole = arrivedOf(reading) ?? (await inTime(reading, ms));
  if (typeof whole === "string") return whole;
  const taking = take(whole);
  if (taking) await taking;
  return "whole";
}

/** The bytes of a body that has arrived whole; null: the rest has not arrived yet. */
export function arrivedOf(reading: Promise<Uint8Array>): Uint8Array | null {
  const bytes = Bun.peek(reading);
  return bytes instanceof Uint8Array ? bytes : null;
}

async function inTime(reading: Promise<Uint8Array>, ms: number): Promise<Uint8Array | "late" | "broken_off"> {
  const { promise, resolve } = Promise.withResolvers<Uint8Array | "late" | "broken_off">();
  const deadline = setTimeout(resolve, ms, "late");
  reading.then(resolve, () => resolve("broken_off"));
  const whole = await promise;
  clearTimeout(deadline);
  return whole;
}

/** Joins bytes that arrive in pieces. `done` is called with each piece whose memory is no longer needed. Pure. */
export class Gathering {
  #whole: Uint8Array = new Uint8Array();
  bytes = 0;

  constructor(
    readonly announced: number,
    readonly done: (piece: Uint8Array) => void,
  ) {}

  /** Adds a piece, and takes over its memory from the caller. */
  add(piece: Uint8Array): void {
    // Most bodies arrive in one piece.
    if (this.bytes === 0 && piece.byteLength >= this.announced) {
      this.#whole = piece;
      this.bytes = piece.byteLength;
      return;
    }
    this.copy(piece);
    this.done(piece);
  }

  /** Adds a copy of a piece; the caller keeps the piece's own memory. */
  copy(piece: Uint8Array): void {
    const before = this.bytes;
    this.bytes += piece.byteLength;
    if (this.bytes > this.#whole.byteLength) this.#grow(before);
    this.#whole.set(piece, before);
  }

  /** The bytes from index `at` to the end so far. */
  from(at: number): Uint8Array {
    return this.#whole.subarray(at, this.bytes);
  }

  /** Reserves more memory than is needed now, because memory that is never written to costs nothing. */
  #grow(used: number): void {
    const smaller = this.#whole;
    this.#whole = new Uint8Array(Math.max(this.announced, this.bytes, 2 * smaller.byteLength));
    this.#whole.set(smaller.subarray(0, used));
    this.done(smaller);
  }
}

export interface UnpackingLimits {
  body_bytes_max: number;
  /** The largest factor by which a body may grow when it is unpacked, if it grows beyond `free_bytes`. */
  body_ratio_max: number;
}

/** Unpacks a body. `take` gets each piece. The next piece is unpacked when `take` is done. */
type Unpack = (sent: Uint8Array, limits: UnpackingLimits, take: TakePiece) => Promise<void>;

/** Up to this size the ratio does not matter: a few kilobytes may be as repetitive as they like. */
const free_bytes = 1024 * 1024;
const piece_bytes = 64 * 1024;

const options = { chunkSize: piece_bytes };
const unpackers = {
  gzip: () => zlib.createGunzip(options),
  "x-gzip": () => zlib.createGunzip(options),
  deflate: () => zlib.createInflate(options),
  br: () => zlib.createBrotliDecompress(options),
  zstd: () => zlib.createZstdDecompress(options),
};

/** The unpacker of a content encoding; null if the body is not compressed. */
export function unpackerFor(encoding: string | null): Unpack | null {
  const name = encoding?.trim().toLowerCase() ?? "identity";
  if (name === "identity" || name === "") return null;
  if (!Object.hasOwn(unpackers, name)) {
    throw new Fault(
      "invalid_value",
      "The content encoding of the request must be gzip, deflate, br, or zstd. You can also omit it.",
      { param: "content-encoding" },
    );
  }
  return unpackWith(name as keyof typeof unpackers);
}

function unpackWith(name: keyof typeof unpackers): Unpack {
  return async (sent, limits, take) => {
    let bytes = 0;
    const unpacker = unpackers[name]();
    try {
      unpacker.end(sent);
      for await (const piece of unpacker as AsyncIterable<Buffer>) {
        bytes += piece.byteLength;
        assertWithin(bytes, sent.byteLength, limits);
        await take(new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength));
      }
    } catch (cause) {
      if (cause instanceof Fault) throw cause;
      throw new Fault("invalid_json", `The request body is not valid ${name}.`, { cause });
    } finally {
      unpacker.destroy();
    }
  };
}

function assertWithin(bytes: number, sent: number, { body_bytes_max, body_ratio_max }: UnpackingLimits): void {
  if (bytes > body_bytes_max) throw tooLarge(body_bytes_max);
  if (bytes <= Math.max(free_bytes, sent * body_ratio_max)) return;
  throw new Fault(
    "request_too_large",
    `The request body unpacks to more than ${body_ratio_max} times its size. Send it uncompressed.`,
  );
}

export function tooLarge(bytes_max: number): Fault {
  return new Fault(
    "request_too_large",
    `The request body is larger than the limit of ${bytes_max} bytes. Send less, for example smaller images.`,
  );
}

/**
 * Frees at once the memory of bytes that are no longer needed. Otherwise hundreds of MiB would pile up before the
 * garbage collector ran.
 */
export function release({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
}
