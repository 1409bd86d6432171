/**
 * Unpacks compressed bodies piece by piece, so that no more of a body is ever unpacked than is scanned, and never many
 * times its size. Faults: invalid_value, invalid_json, request_too_large, and those that `take` throws.
 */
import zlib from "node:zlib";
import { Fault } from "../inference/fault.ts";

export interface UnpackingLimits {
  body_bytes_max: number;
  /** The largest factor by which a body may grow when it is unpacked, if it grows beyond `free_bytes`. */
  body_ratio_max: number;
}

/** `take` gets each piece. The next one is unpacked when it is done. */
type Unpack = (
  sent: Uint8Array,
  limits: UnpackingLimits,
  take: (piece: Uint8Array) => void | Promise<void>,
) => Promise<void>;

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
      {
        param: "content-encoding",
      },
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
