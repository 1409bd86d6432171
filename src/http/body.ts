/**
 * A request's body: bounded in bytes (after decompression), in shape and in time before anything is made of it; then
 * decoded strictly as UTF-8 and JSON. Faults: invalid_content_type, request_too_large, invalid_json.
 * Rules: docs/design/service.md, Cost before trust.
 */
import { Fault } from "../inference/fault.ts";
import { assertShape, BodyScan, type ShapeLimits } from "../protocol/body-scan.ts";
import { parsingSteps, type ScannedBody } from "../protocol/json-body.ts";
import { breather, inTurns, small_bytes } from "./breather.ts";
import { tooLarge, type UnpackingLimits, unpackerFor } from "./decompress.ts";
import { readAtOnce, readPieces, release, type TakePiece } from "./pieces.ts";

export interface BodyLimits extends ShapeLimits, UnpackingLimits {
  body_read_ms: number;
}

export interface JsonBody<Value = unknown> {
  value: Value;
  /** Size after decompression. */
  bytes: number;
}

/** Hears how many bytes are held of a body, before they are; a Fault that it throws refuses the request. */
export type Hold = (bytes: number) => void;

export async function readJson(request: Request, limits: BodyLimits, hold: Hold): Promise<JsonBody> {
  const { body_values_max, body_members_max } = limits;
  const { bytes, shape } = await readBody(
    request,
    limits,
    hold,
    Math.min(small_bytes, body_values_max, body_members_max),
  );
  const size = bytes.byteLength;
  const value = await inTurns(parsingSteps({ bytes, shape }, limits.body_depth_max));
  if (size > slice_bytes) release(bytes);
  return { value, bytes: size };
}

/** The bytes of a body that says it is JSON, decompressed and looked over, not yet parsed. */
export async function readJsonBytes(request: Request, limits: BodyLimits, hold: Hold): Promise<Uint8Array> {
  return (await readBody(request, limits, hold, 0)).bytes;
}

/** Up to `unseen_bytes` a body is not looked over: so small a one can hold no more than it may. */
async function readBody(request: Request, limits: BodyLimits, hold: Hold, unseen_bytes: number): Promise<ScannedBody> {
  requireJson(request.headers.get("content-type"));
  const unpack = unpackerFor(request.headers.get("content-encoding"));
  const body = gathering(unpack ? keep : release);
  const scan = new BodyScan();
  let unseen: Uint8Array[] = [];
  const look = async (piece: Uint8Array) => {
    hold(body.bytes() + piece.byteLength);
    body.add(piece);
    unseen.push(piece);
    if (body.bytes() <= unseen_bytes) return;
    for (const one of unseen) await lookOver(scan, one, limits);
    unseen = [];
  };
  if (unpack) {
    const sent = gathering(release);
    await readInto(request, limits, hold, (piece) => {
      hold(sent.bytes() + piece.byteLength);
      sent.add(piece);
    });
    await unpack(sent.whole(), limits, look);
  } else await readInto(request, limits, hold, look);
  assertShape(scan, limits);
  return { bytes: body.whole(), shape: unseen.length > 0 ? null : scan };
}

function requireJson(contentType: string | null): void {
  if (contentType !== null && /^\s*application\/json\s*(;|$)/i.test(contentType)) return;
  throw new Fault(
    "invalid_content_type",
    "The content type of the request must be application/json. Set the 'content-type' header.",
  );
}

async function readInto(request: Request, limits: BodyLimits, hold: Hold, take: TakePiece): Promise<void> {
  const { body_bytes_max: bytes_max, body_read_ms: ms } = limits;
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > bytes_max) throw tooLarge(bytes_max);
  hold(announced);
  if (!request.body) return;
  const isSmall = announced > 0 && announced <= small_bytes;
  const reading = await (isSmall ? readAtOnce(request, ms, take) : readPieces(request.body, { bytes_max, ms }, take));
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

/** What was unpacked shares its memory with what is to come. */
function keep(): void {}

/** What is looked over before others get their turn. */
const slice_bytes = 1024 * 1024;

/** Refuses what no body of the largest size may be; what this one may be shows at its end. */
async function lookOver(scan: BodyScan, piece: Uint8Array, limits: BodyLimits): Promise<void> {
  for (let from = 0; from < piece.byteLength; from += slice_bytes) {
    scan.take(piece.subarray(from, from + slice_bytes));
    assertShape(scan, limits, limits.body_bytes_max);
    if (from + slice_bytes < piece.byteLength) await breather(piece.byteLength);
  }
}

/** Pieces that become one; `done` hears of each that was copied. */
function gathering(done: (piece: Uint8Array) => void) {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  return {
    add(piece: Uint8Array): void {
      pieces.push(piece);
      bytes += piece.byteLength;
    },
    bytes: () => bytes,
    whole(): Uint8Array {
      if (pieces.length === 1) return pieces[0]!;
      const whole = new Uint8Array(bytes);
      let at = 0;
      for (const piece of pieces.splice(0)) {
        whole.set(piece, at);
        at += piece.byteLength;
        done(piece);
      }
      return whole;
    },
  };
}
