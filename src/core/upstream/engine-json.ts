/**
 * Reads JSON that an engine wrote. Like the JSON of clients, it is scanned before it is parsed, and parsed in steps if
 * it is large. JSON beyond the limits is an UnreadableAnswer: docs/design/errors-and-streams.md, Answers that are
 * bounded.
 */

import { isQuick, parseInSteps } from "../body/json-steps.ts";
import { Gathering, release } from "../body/pieces.ts";
import { BodyScan, type BodyShape, excessOf, lookingOver, type ShapeLimits } from "../body/scan.ts";
import { UnreadableAnswer } from "../protocol/codec.ts";
import { parsedWithInputs } from "../protocol/tool-input.ts";
import { inTurns, type Soon, yieldFor } from "../time/turns.ts";
import { type Reply, unread_bytes_max } from "./http1/exchange.ts";

/** The largest answer of an engine that is not streamed. One event of a stream may be as large (sse/decode.ts). */
export const answer_bytes_max = 8 * 1024 * 1024;

/**
 * The limits of the shape of a whole answer, or of one event. Log probabilities are the densest values that an honest
 * engine sends: one value in eight bytes.
 */
export const answerLimits: ShapeLimits = {
  body_depth_max: 100,
  body_values_max: 500_000,
  body_members_max: 250_000,
  body_names_max: 10_000,
};

/** Texts up to this size are parsed without a scan. */
export const unseen_bytes = 16 * 1024;

/**
 * Called with the number of bytes of an answer that will be kept in memory, before they are. Throws to end the request.
 */
export type HoldBytes = (bytes: number) => void;

export interface EngineJson {
  value: unknown;
  bytes: number;
}

/** The JSON of an answer. Returns a promise only if the answer has not arrived, or is not small. */
export function readJson(reply: Pick<Reply, "read" | "whole" | "headers">, hold: HoldBytes): Soon<EngineJson> {
  const whole = reply.whole();
  return whole ? { value: parsedSmall(whole), bytes: whole.byteLength } : readPieces(reply, hold);
}

async function readPieces(reply: Pick<Reply, "read" | "headers">, hold: HoldBytes): Promise<EngineJson> {
  const body = new Gathering(announcedBytes(reply), release);
  let scan: BodyScan | null = null;
  for (;;) {
    const pieces = await reply.read(unread_bytes_max);
    if (pieces === null) break;
    for (const piece of pieces) {
      const bytes = body.bytes + piece.byteLength;
      if (bytes > answer_bytes_max) throw new UnreadableAnswer(`the answer is larger than ${answer_bytes_max} bytes`);
      hold(bytes);
      body.copy(piece);
    }
    if (body.bytes <= unseen_bytes) continue;
    scan ??= new BodyScan();
    scan.take(body.from(scan.bytes));
    assertReadable(scan, answerLimits, answer_bytes_max);
  }
  const value = await parsed(body.from(0), scan);
  const { bytes } = body;
  if (bytes > unseen_bytes) release(body.from(0));
  return { value, bytes };
}

/**
 * The size that the engine announces in `content-length`. Memory for all of it is allocated at once: untouched memory
 * costs nothing.
 */
function announcedBytes({ headers }: Pick<Reply, "headers">): number {
  const announced = Number(headers.get("content-length") ?? 0);
  return announced <= answer_bytes_max ? announced : 0;
}

export async function parseLarge(text: string): Promise<unknown> {
  const bytes = new TextEncoder().encode(text);
  const scan = new BodyScan();
  try {
    const check = () => assertReadable(scan, answerLimits, bytes.byteLength);
    for (const size of lookingOver(scan, bytes, check)) await yieldFor(size);
    return await parsed(bytes, scan, text);
  } finally {
    release(bytes);
  }
}

export function assertReadable(shape: BodyShape, limits: ShapeLimits, bytes_max = shape.bytes): void {
  const excess = excessOf(shape, limits, bytes_max);
  if (excess) throw new UnreadableAnswer(`the answer holds more than ${excess.max} ${excess.of}`);
}

const lenient = new TextDecoder();

/** Parses the bytes. `text`: the text from which the bytes were made, if there was one. */
function parsed(bytes: Uint8Array, scan: BodyScan | null, text?: string): unknown {
  if (scan) assertReadable(scan, answerLimits);
  if (scan === null || isQuick(scan)) return parsedSmall(bytes, text);
  return Promise.try(() => inTurns(parseInSteps(bytes, { isLenient: true }))).then(({ value }) => value, noJson);
}

function parsedSmall(bytes: Uint8Array, text?: string): unknown {
  try {
    return parsedWithInputs(text ?? lenient.decode(bytes));
  } catch (cause) {
    return noJson(cause);
  }
}

function noJson(cause: unknown): never {
  throw new UnreadableAnswer("the answer is no JSON", { cause });
}
