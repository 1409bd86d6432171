/**
 * Reads a request's body: bounds its bytes (after decompression), its shape and the time that it takes, then decodes it
 * strictly as UTF-8 and JSON. Faults: invalid_content_type, request_too_large, invalid_json. Rules:
 * docs/design/service.md, Cost before trust.
 */
import { Fault } from "../inference/fault.ts";
import { parsedWithInputs } from "../protocol/tool-input.ts";
import { inTurns, type Pause, type Soon, small_bytes, yieldFor } from "../time/turns.ts";
import type { BodyItems, UnseenItems } from "./body-items.ts";
import { isQuick, type Parsed, parseInSteps } from "./json-steps.ts";
import { OwnBytes } from "./own-bytes.ts";
import {
  arrivedOf,
  Gathering,
  readInto,
  release,
  type TakePiece,
  tooLarge,
  type UnpackingLimits,
  unpackerFor,
} from "./pieces.ts";
import { assertShape, BodyScan, excessOf, lookingOver, type ShapeLimits, tooDeep } from "./scan.ts";

export interface BodyLimits extends ShapeLimits, UnpackingLimits {
  body_read_ms: number;
}

export interface JsonBody<Value = unknown> {
  value: Value;
  /** Size after decompression. */
  bytes: number;
  /** About how many of the bytes are in long runs of white space, of which a model sees few tokens or none. */
  blank_bytes: number;
  /** The bytes of a large body that was scanned. Null: the request to the engine is encoded anew. */
  own: OwnBytes | null;
  /** SHA-256 of the body as hexadecimal digits, if `hasDigest` was set. */
  digest: string | null;
}

export interface ReadBody extends JsonBody {
  /** The items that have to be checked; null: all items. */
  unseen: UnseenItems | null;
  /** Keeps the valid body's items for later requests. Call it before the body's bytes are used up. */
  keepItems(): void;
}

interface Reading {
  /** Waits for other requests between the steps of a large body. */
  pause?: Pause;
  hasDigest?: boolean;
  /** Makes the look-up of items from earlier bodies, if the body is scanned; null: no items are looked up. */
  itemsOf?: (() => BodyItems) | null;
}

/** Called before a body holds this many bytes of memory. A Fault that is thrown refuses the request. */
type HoldBytes = (bytes: number) => void;

type Sent = Pick<Request, "headers" | "body" | "bytes">;

/** Returns a promise unless the body is small, plain and of announced size, and has arrived. */
export function readJson(request: Sent, limits: BodyLimits, hold: HoldBytes, reading: Reading = {}): Soon<ReadBody> {
  const { headers } = request;
  const announced = Number(headers.get("content-length") ?? 0);
  const isSmall = announced > 0 && announced <= Math.min(unscannedBytes(limits), limits.body_bytes_max);
  if (!isSmall || headers.has("content-encoding")) return readInSteps(request, limits, hold, reading);
  requireJson(headers.get("content-type"));
  hold(announced);
  const sent = request.bytes();
  const bytes = arrivedOf(sent);
  if (bytes && bytes.byteLength <= announced) return smallBody(bytes, limits, reading.hasDigest);
  return readInSteps({ headers, body: null, bytes: () => sent }, limits, hold, reading);
}

async function readInSteps(
  request: Sent,
  limits: BodyLimits,
  hold: HoldBytes,
  { pause = yieldFor, hasDigest = false, itemsOf = null }: Reading,
): Promise<ReadBody> {
  const unscanned_bytes = unscannedBytes(limits);
  const { bytes, shape } = await readBody(request, { limits, hold, pause, unscanned_bytes, itemsOf });
  const size = bytes.byteLength;
  await pause(size);
  if (shape === null) return smallBody(bytes, limits, hasDigest);
  const digest = hasDigest ? digestOf(bytes) : null;
  const blank_bytes = blanksOf(bytes);
  const { value, isIntact } = await inTurns(parsingSteps({ bytes, shape }), pause);
  const own = isIntact && shape.marks ? new OwnBytes(bytes, shape.marks, value) : null;
  if (!own && size > kept_bytes) release(bytes);
  const unseen = shape.items?.unseen() ?? null;
  const keepItems = () => own && shape.items?.keep(bytes);
  return { value, bytes: size, blank_bytes, own, digest, unseen, keepItems };
}

/** A body that was not scanned, so its depth is checked here. */
function smallBody(bytes: Uint8Array, { body_depth_max }: BodyLimits, hasDigest = false): ReadBody {
  const digest = hasDigest ? digestOf(bytes) : null;
  const value = parseJsonBody(bytes);
  if (isDeeper(value, body_depth_max)) throw tooDeep(body_depth_max);
  const sizes = { bytes: bytes.byteLength, blank_bytes: blanksOf(bytes) };
  return { value, ...sizes, own: null, digest, unseen: null, keepItems() {} };
}

/** One byte of this many is sampled: if it and the two before it are white space, all of this many count so. */
const blankStride = 16;
const space_code = 0x20;

/** About how many bytes are in long runs of white space. */
export function blanksOf(bytes: Uint8Array): number {
  let blanks = 0;
  for (let at = blankStride; at < bytes.byteLength; at += blankStride)
    if (bytes[at]! <= space_code && bytes[at - 1]! <= space_code && bytes[at - 2]! <= space_code) blanks += blankStride;
  return blanks;
}

const digestOf = (bytes: Uint8Array) => new Bun.CryptoHasher("sha256").update(bytes).digest("hex");

/** The memory of bodies up to this size is left to the garbage collector. */
const kept_bytes = 1024 * 1024;

/** The largest body that cannot exceed a limit: a value takes at least one byte, a member five, a new name six. */
function unscannedBytes({ body_values_max, body_members_max, body_names_max }: ShapeLimits): number {
  return Math.min(small_bytes, body_values_max, 5 * body_members_max, 6 * body_names_max);
}

/** The bytes of a body with a JSON content type, decompressed and scanned, not yet parsed. */
export async function readJsonBytes(
  request: Request,
  limits: BodyLimits,
  hold: HoldBytes,
  pause: Pause = yieldFor,
): Promise<Uint8Array> {
  return (await readBody(request, { limits, hold, pause, unscanned_bytes: 0, itemsOf: null })).bytes;
}

interface ReadingOf extends Required<Pick<Reading, "pause" | "itemsOf">> {
  limits: BodyLimits;
  hold: HoldBytes;
  unscanned_bytes: number;
}

async function readBody(request: Sent, reading: ReadingOf): Promise<ScannedBody> {
  const { limits, hold, pause, unscanned_bytes, itemsOf } = reading;
  requireJson(request.headers.get("content-type"));
  const unpack = unpackerFor(request.headers.get("content-encoding"));
  const announced = announcedBytes(request, limits, hold);
  const bounds = { bytes_max: limits.body_bytes_max, ms: limits.body_read_ms };
  const body = unpack ? new Gathering(0, keep) : new Gathering(announced, release);
  let scan = null as BodyScan | null;
  const look: TakePiece = (piece) => {
    hold(body.bytes + piece.byteLength);
    body.add(piece);
    if (body.bytes <= unscanned_bytes) return;
    scan ??= new BodyScan(itemsOf?.());
    return lookOver(scan, body.from(scan.bytes), limits, pause);
  };
  if (unpack) {
    const sent = new Gathering(announced, release);
    await readInto(request, announced, bounds, (piece) => {
      hold(sent.bytes + piece.byteLength);
      sent.add(piece);
    });
    await unpack(sent.from(0), limits, look);
  } else await readInto(request, announced, bounds, look);
  const bytes = body.from(0);
  if (scan && mayHoldMoreNames(scan, limits)) {
    scan = new BodyScan();
    await lookOver(scan, bytes, limits, pause);
  }
  if (scan) assertShape(scan, limits);
  return { bytes, shape: scan };
}

/** Reports whether the items that the scan passed over could have more different names than a body may have. */
function mayHoldMoreNames(scan: BodyScan, limits: BodyLimits): boolean {
  const passed = scan.items?.found.members ?? 0;
  const { bytes, depth, values, members, names } = scan;
  return passed > 0 && excessOf({ bytes, depth, values, members, names: names + passed }, limits) !== null;
}

const saysJson = /^\s*application\/json\s*(;|$)/i;

function requireJson(contentType: string | null): void {
  if (contentType !== null && saysJson.test(contentType)) return;
  throw new Fault(
    "invalid_content_type",
    "The content type of the request must be application/json. Set the 'content-type' header.",
  );
}

/** The announced size of the body; 0 if it was not announced. Throws if it is too large. */
function announcedBytes(request: Sent, { body_bytes_max }: BodyLimits, hold: HoldBytes): number {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > body_bytes_max) throw tooLarge(body_bytes_max);
  hold(announced);
  return announced;
}

/**
 * `Gathering.done` for unpacked bytes, which share their memory with the next piece: they are copied and not released.
 */
function keep(): void {}

/** Scans a piece by the limits for a body of the largest size. The limits for its own size are checked at its end. */
async function lookOver(scan: BodyScan, piece: Uint8Array, limits: BodyLimits, pause: Pause): Promise<void> {
  const check = () => assertShape(scan, limits, limits.body_bytes_max);
  for (const bytes of lookingOver(scan, piece, check)) await pause(bytes);
}

interface ScannedBody {
  bytes: Uint8Array;
  /** The scan of the body; null: the body was too small to cost much, and was not scanned. */
  shape: BodyScan | null;
}

const strict = new TextDecoder("utf-8", { fatal: true });

/** Parses the bytes of a body in one step, however long it takes. */
export function parseJsonBody(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) throw new Fault("invalid_json", "The request has no body. Send a JSON object.");
  let text: string;
  try {
    text = strict.decode(bytes);
  } catch (cause) {
    throw noUtf8(cause);
  }
  try {
    return parsedWithInputs(text);
  } catch (cause) {
    throw noJson(whereOf(cause), cause);
  }
}

/** As `parseJsonBody`, with pauses if it could take long. */
export function* parsingSteps({ bytes, shape }: ScannedBody & { shape: BodyScan }): Generator<void, Parsed, void> {
  const { items } = shape;
  const members = shape.marks ? (shape.marks.length - 1) / 2 : -1;
  const known = items && members >= 0 ? filled(bytes, shape, items, members) : null;
  if (known) return known;
  const parsed = yield* parsedWhole(bytes, shape);
  items?.parsed(parsed.value, members);
  return parsed;
}

function* parsedWhole(bytes: Uint8Array, shape: BodyScan): Generator<void, Parsed, void> {
  if (isQuick(shape)) return { value: parseJsonBody(bytes), isIntact: true };
  try {
    return yield* parseInSteps(bytes);
  } catch (cause) {
    throw cause instanceof SyntaxError ? noJson("", cause) : noUtf8(cause);
  }
}

/**
 * Parses only the items that were not seen before. Null: all of the body has to be parsed, also to find what is wrong
 * with it.
 */
function filled(bytes: Uint8Array, shape: BodyScan, items: BodyItems, members: number): Parsed | null {
  const { found } = items;
  if (found.items === 0) return null;
  const rest = items.remainder(bytes);
  const read = { bytes: rest.length, values: shape.values - found.values, members: shape.members - found.members };
  if (!isQuick(read)) return null;
  let value: unknown;
  try {
    value = parsedWithInputs(strict.decode(rest));
  } catch {
    return null;
  }
  return items.fill(value, members) ? { value, isIntact: true } : null;
}

function noUtf8(cause: unknown): Fault {
  return new Fault("invalid_json", "The request body is not valid UTF-8.", { cause });
}

function noJson(where: string, cause: unknown): Fault {
  return new Fault("invalid_json", `The request body is not valid JSON${where}.`, { cause });
}

/** The position of the error. The parser's message quotes the body, and must not be passed on. */
function whereOf(cause: unknown): string {
  const at = /position (\d+)/.exec(String((cause as Error)?.message))?.[1];
  return at ? ` (at position ${at})` : "";
}

/** Whether the value nests deeper than `levels` objects and arrays. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === "object" && isDeeper(item, levels - 1)) return true;
    return false;
  }
  for (const key in value) {
    const item = (value as Record<string, unknown>)[key];
    if (typeof item === "object" && isDeeper(item, levels - 1)) return true;
  }
  return false;
}
