/**
 * A request's body: bounded in bytes (after decompression), in depth and in time, decoded strictly as UTF-8 and JSON.
 * Faults: invalid_content_type, request_too_large, invalid_json.
 */
import { promisify } from "node:util";
import zlib from "node:zlib";
import { Fault } from "../inference/fault.ts";
import { parseJsonBody } from "../protocol/json-body.ts";
import { readPieces } from "./pieces.ts";

export interface BodyLimits {
  body_bytes_max: number;
  body_depth_max: number;
  body_read_ms: number;
}

export interface JsonBody<Value = unknown> {
  value: Value;
  /** Size after decompression. */
  bytes: number;
}

export async function readJson(request: Request, limits: BodyLimits): Promise<JsonBody> {
  const bytes = await readJsonBytes(request, limits);
  return { value: parseJsonBody(bytes, limits.body_depth_max), bytes: bytes.byteLength };
}

/** The bytes of a body that says it is JSON, decompressed and not yet looked into. */
export async function readJsonBytes(request: Request, limits: BodyLimits): Promise<Uint8Array> {
  requireJson(request.headers.get("content-type"));
  const decompress = decompressor(request.headers.get("content-encoding"));
  const sent = await readBytes(request, limits);
  return decompress ? decompress(sent, limits.body_bytes_max) : sent;
}

function requireJson(contentType: string | null): void {
  if (contentType !== null && /^\s*application\/json\s*(;|$)/i.test(contentType)) return;
  throw new Fault(
    "invalid_content_type",
    "The content type of the request must be application/json. Set the 'content-type' header.",
  );
}

async function readBytes(request: Request, limits: BodyLimits): Promise<Uint8Array> {
  const { body_bytes_max: bytes_max, body_read_ms: ms } = limits;
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > bytes_max) throw tooLarge(bytes_max);
  if (!request.body) return new Uint8Array();
  const pieces: Uint8Array[] = [];
  const reading = await readPieces(request.body, { bytes_max, ms }, (piece) => void pieces.push(piece));
  if (reading === "too_large") throw tooLarge(bytes_max);
  if (reading === "late") throw unfinished(ms);
  if (reading !== "whole") throw new Fault("invalid_json", "The request body ended early. Send it again.");
  return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
}

function tooLarge(bytes_max: number): Fault {
  return new Fault(
    "request_too_large",
    `The request body is larger than the limit of ${bytes_max} bytes. Send less, for example smaller images.`,
  );
}

function unfinished(ms: number): Fault {
  return new Fault(
    "invalid_json",
    `The request body did not arrive within ${Math.round(ms / 1000)} seconds. Send it again.`,
    { headers: { connection: "close" } },
  );
}

type Decompress = (bytes: Uint8Array, bytes_max: number) => Promise<Uint8Array>;

const algorithms: Record<string, (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>> = {
  gzip: promisify(zlib.gunzip),
  "x-gzip": promisify(zlib.gunzip),
  deflate: promisify(zlib.inflate),
  br: promisify(zlib.brotliDecompress),
  zstd: promisify(zlib.zstdDecompress),
};

function decompressor(encoding: string | null): Decompress | null {
  const name = encoding?.trim().toLowerCase() ?? "identity";
  if (name === "identity" || name === "") return null;
  const algorithm = algorithms[name];
  if (!algorithm) {
    throw new Fault(
      "invalid_value",
      "The content encoding of the request must be gzip, deflate, br, or zstd. You can also omit it.",
      {
        param: "content-encoding",
      },
    );
  }
  return async (bytes, bytes_max) => {
    try {
      return await algorithm(bytes, { maxOutputLength: bytes_max });
    } catch (cause) {
      if ((cause as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE") throw tooLarge(bytes_max);
      throw new Fault("invalid_json", `The request body is not valid ${name}.`, { cause });
    }
  };
}
