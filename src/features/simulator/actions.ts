/**
 * Turns an answer into actions on the connection: frames to write, each at its time, and the faults that directives
 * request.
 */
import { type Chunk, type ChunkOptions, chunks } from "./chunks.ts";
import type { Directives, Quirk } from "./directives.ts";
import { errorBody } from "./errors.ts";
import type { SimulatedAnswer } from "./parts.ts";
import { SimulatorRefusal } from "./refusal.ts";

export type Action =
  /** Writes text when its tokens are due. `early`: writes the text immediately, with the head of the response. */
  | { kind: "write"; text: string; tokens: number; early?: boolean }
  | { kind: "write-bytes"; bytes: Uint8Array; tokens: number }
  | { kind: "pause"; pause_ms: number }
  | { kind: "stall" }
  | { kind: "cut" };

/**
 * The actions of a stream. `sendsHead`: an empty line is written immediately, because Bun does not send the head of a
 * response before the first byte of its body.
 */
export function* streamActions(
  answer: SimulatedAnswer,
  options: ChunkOptions,
  directives: Directives,
  sendsHead: boolean,
): Generator<Action> {
  const { quirks } = directives;
  if (quirks.has("bom")) yield { kind: "write", text: "\ufeff", tokens: 0, early: true };
  else if (sendsHead) yield { kind: "write", text: lineEnd(quirks), tokens: 0, early: true };
  const waiting = faultsIn(directives);
  let made = 0;
  for (const chunk of chunks(answer, options)) {
    while (waiting[0] && isDue(waiting[0].after, made, chunk, answer)) {
      const fault = waiting.shift()!;
      yield* faultActions(fault.kind, directives);
      if (fault.kind !== "malformed") return;
    }
    made += chunk.tokens;
    yield* frameActions(options.written?.(chunk.json) ?? chunk.json, chunk.tokens, quirks);
  }
  if (!directives.flags.has("no-done")) yield* frameActions("[DONE]", 0, quirks);
}

/** The actions of a body that is not streamed. If a fault is requested, it comes after the first half of the body. */
export function* wholeActions(body: string, answer: SimulatedAnswer, directives: Directives): Generator<Action> {
  const tokens = answer.usage.completion_tokens;
  const fault = faultsIn(directives)[0];
  const sent = fault === undefined ? body : body.slice(0, body.length / 2);
  if (fault?.kind === "stall" && fault.after === 0) yield { kind: "write", text: "\n", tokens: 0, early: true };
  if (fault?.after === 0 && fault.kind !== "malformed") yield* faultActions(fault.kind, directives);
  yield { kind: "write", text: sent, tokens };
  if (fault && fault.kind !== "malformed") yield* faultActions(fault.kind, directives);
}

interface Fault {
  kind: "cut" | "stall" | "malformed" | "error";
  after: number;
}

function faultsIn(directives: Directives): Fault[] {
  const { numbers, flags } = directives;
  const found: Fault[] = flags.has("stall") ? [{ kind: "stall", after: 0 }] : [];
  for (const kind of ["malformed", "error", "stall", "cut"] as const) {
    const after = numbers[`${kind}-after`];
    if (after !== undefined) found.push({ kind, after });
  }
  return found.sort((a, b) => a.after - b.after);
}

/**
 * Whether a fault is due before this chunk. A fault that is set beyond the end of a short answer is due just before the
 * answer's end.
 */
function isDue(after: number, made: number, chunk: Chunk, answer: SimulatedAnswer): boolean {
  if (made >= after || made + chunk.tokens > after) return true;
  return chunk.tokens === 0 && made >= answer.usage.completion_tokens;
}

function* faultActions(kind: Fault["kind"], directives: Directives): Generator<Action> {
  if (kind === "stall" || kind === "cut") yield { kind };
  else if (kind === "malformed")
    yield* frameActions('{"id":"chatcmpl-sim","choices":[{"index":0,"delta":{"con', 0, directives.quirks);
  else {
    const error = errorBody(
      new SimulatorRefusal(500, "Simulator: an error in the stream, as asked."),
      directives.quirks,
    );
    yield* frameActions(JSON.stringify(error), 0, directives.quirks);
    if (!directives.flags.has("no-done")) yield* frameActions("[DONE]", 0, directives.quirks);
  }
}

function lineEnd(quirks: ReadonlySet<Quirk>): string {
  return quirks.has("crlf") ? "\r\n" : "\n";
}

function* frameActions(data: string, tokens: number, quirks: ReadonlySet<Quirk>): Generator<Action> {
  const end = lineEnd(quirks);
  const comment = quirks.has("comments") ? `: the Sluice simulator is here${end}${end}` : "";
  const text = `${comment}data:${quirks.has("no-space") ? "" : " "}${data}${end}${end}`;
  if (quirks.has("split-utf8")) yield* splitActions(text, tokens);
  else yield { kind: "write", text, tokens };
}

/** The pause between the two halves of a character, so that the client gets them in two reads. */
const split_pause_ms = 3;

function* splitActions(text: string, tokens: number): Generator<Action> {
  const bytes = new TextEncoder().encode(text);
  const inside = bytes.findIndex((byte) => (byte & 0xc0) === 0x80);
  if (inside < 0) {
    yield { kind: "write", text, tokens };
    return;
  }
  yield { kind: "write-bytes", bytes: bytes.slice(0, inside), tokens };
  yield { kind: "pause", pause_ms: split_pause_ms };
  yield { kind: "write-bytes", bytes: bytes.slice(inside), tokens: 0 };
  yield { kind: "pause", pause_ms: split_pause_ms };
}
