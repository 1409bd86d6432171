/**
 * The base of the decoders of engines' answers, for all protocols. Also joins characters that were cut in two, bounds
 * the number of parts (docs/design/errors-and-streams.md, Answers that are bounded), and reads the reason for an
 * answer's end.
 */
import type { InferenceEvent, PartDelta, StopReason } from "../inference/event.ts";
import type { Fault } from "../inference/fault.ts";
import { type EngineDecoder, type EngineEvent, type ResponseIdentity, UnreadableAnswer } from "./codec.ts";
import type { Dialect, FinishReason as Meaning } from "./dialect.ts";
import { dialects } from "./dialects.ts";
import { compact, entryOf, isObject, type JsonObject } from "./json.ts";
import { malformedAnswer } from "./refusal.ts";

/**
 * The decoder of one answer: it begins the answer once, and emits nothing after its end. A subclass is a class, and not
 * closures, which would be made again for each answer (docs/design/runtime.md, Memory).
 */
export abstract class BaseAnswerDecoder implements EngineDecoder {
  protected readonly identity: ResponseIdentity;
  protected readonly dialect: Dialect;
  protected readonly reason: FinishReason;
  readonly #characters = new WholeCharacters();
  #started = false;
  protected over = false;

  constructor(identity: ResponseIdentity, dialect: Dialect = dialects.generic) {
    this.identity = identity;
    this.dialect = dialect;
    this.reason = new FinishReason(dialect.finishReasons);
  }

  /** Whether `take` uses the data of events with this name. If not, `take` is called with an empty object. */
  reads(_name: string): boolean {
    return true;
  }

  push(event: EngineEvent): InferenceEvent[] {
    return this.#characters.mend(this.#decoded(event));
  }

  end(): InferenceEvent[] {
    return this.#characters.mend(this.ended());
  }

  /** Takes the JSON of one event. `name`: the event's name, "" if it has none. */
  abstract take(event: JsonObject, name: string): InferenceEvent[];

  protected abstract ended(): InferenceEvent[];

  /** Called for `[DONE]`, which some engines send after their last event in every protocol. */
  protected abstract done(): InferenceEvent[];

  /** Ends the answer with a fault, unless it has ended. */
  fail(fault: Fault): InferenceEvent[] {
    if (this.over) return [];
    this.over = true;
    return [{ type: "response-failed", fault }];
  }

  /** The event that begins the answer; none if the answer has begun. */
  protected started(): InferenceEvent[] {
    if (this.#started) return [];
    this.#started = true;
    return [{ type: "response-start", ...this.identity }];
  }

  protected ends(reason: StopReason, stopSequence?: string): InferenceEvent {
    this.over = true;
    return {
      type: "response-end",
      reason,
      ...compact({ stopSequence: stopSequence || undefined, unknownReason: this.reason.unknown }),
    };
  }

  #decoded(event: EngineEvent): InferenceEvent[] {
    const name = event.event ?? "";
    if (this.over) return [];
    if (!this.reads(name)) return this.take({}, name);
    if (isBlank(event)) return [];
    let value: unknown;
    try {
      value = jsonOf(event);
    } catch (cause) {
      return this.#unparsed(event, cause);
    }
    if (!isObject(value)) return this.fail(malformedAnswer(new Error("an event that is no object")));
    return this.take(value, name);
  }

  /**
   * Handles an event whose data is not JSON. Some engines end an event with a single line break and no blank line, so
   * that the data of two events arrives as one event.
   */
  #unparsed(event: EngineEvent, cause: unknown): InferenceEvent[] {
    const { data } = event;
    if (data.trim() === "[DONE]") return this.done();
    const lines = data.split("\n");
    if (lines.length === 1) return this.fail(malformedAnswer(cause));
    return lines.flatMap((line) => this.#decoded({ ...event, data: line }));
  }
}

/** The most parts or calls of an answer. Models make a few dozen. */
export const parts_max = 1024;

export function assertFewParts(count: number): void {
  if (count > parts_max) throw new UnreadableAnswer(`the answer has more than ${parts_max} parts`);
}

/** The events of a complete reply. The surrogate halves of a character are joined; a lone half becomes U+FFFD. */
export function wholeReply(events: InferenceEvent[]): InferenceEvent[] {
  return new WholeCharacters().mend(events);
}

export function isBlank({ data, parsed }: EngineEvent): boolean {
  return !parsed && data.trim() === "";
}

/** The event's JSON. Throws the SyntaxError of JSON.parse. */
export function jsonOf({ data, parsed }: EngineEvent): unknown {
  return parsed ? parsed.value : JSON.parse(data);
}

/**
 * Keeps characters whole in an answer's text. Some engines cut a character in two at a token's end, and JSON then
 * brings each half as a lone surrogate: the first half is kept here until the second half arrives. A half whose other
 * half never arrives becomes U+FFFD.
 */
export class WholeCharacters {
  /** The first halves of characters that wait for the second half, by the index of their part. */
  readonly #waiting = new Map<number, string>();

  /** The events with whole characters; the same events if they have no half characters, which is nearly always so. */
  mend(events: InferenceEvent[]): InferenceEvent[] {
    if (this.#waiting.size === 0 && events.every(isWhole)) return events;
    return events.flatMap((event) => this.#mended(event));
  }

  #mended(event: InferenceEvent): InferenceEvent[] {
    switch (event.type) {
      case "part-delta":
        return this.#joined(event);
      case "part-end":
        return [...this.#given(event.index), event];
      case "response-end":
      case "response-failed":
        return [...[...this.#waiting.keys()].flatMap((index) => this.#given(index)), event];
      default:
        return [event];
    }
  }

  #joined(event: PartDelta): InferenceEvent[] {
    const { index } = event;
    const text = (this.#waiting.get(index) ?? "") + event.delta;
    const cut = endsInHalf.test(text) ? text.length - 1 : text.length;
    if (cut < text.length) this.#waiting.set(index, text.slice(cut));
    else this.#waiting.delete(index);
    const delta = text.slice(0, cut).toWellFormed();
    return delta === "" && !event.logprobs && event.delta !== "" ? [] : [{ ...event, delta }];
  }

  /** The event that writes U+FFFD for a first half still waiting when its part ends; no event if none waits. */
  #given(index: number): InferenceEvent[] {
    const half = this.#waiting.get(index);
    this.#waiting.delete(index);
    return half === undefined ? [] : [{ type: "part-delta", index, delta: half.toWellFormed() }];
  }
}

const endsInHalf = /[\uD800-\uDBFF]$/;

function isWhole(event: InferenceEvent): boolean {
  return event.type !== "part-delta" || event.delta.isWellFormed();
}

/**
 * The words by which engines say why an answer ended, and their meanings, from the table of the engine's dialect. Case
 * does not count, and `content-filter` and `contentFilter` are `content_filter`: docs/engines.md, How answers end.
 */
type Words = Dialect["finishReasons"];

/**
 * The meaning of an engine's word; undefined for an unknown word. A value that is not text is not a reason yet: engines
 * send null and false until the answer ends.
 */
function meaningOf(word: unknown, words: Words): Meaning | undefined {
  if (typeof word !== "string") return "unfinished";
  // Some engines send a reason with each token, so the word is first looked up unchanged, which is fast.
  const written = entryOf(words, word);
  if (written !== undefined) return written;
  const plain = plainOf(word);
  // A word that means a failure must not count as success, even if the word is not in the table.
  return (
    entryOf(words, plain) ??
    (/(^|_)(error|failed|failure|aborted|timeout|exception)(_|$)/.test(plain) ? "failed" : undefined)
  );
}

/**
 * An engine's word in lower case with underscores: `max_tokens` for `FinishReason.MAX_TOKENS`, `max-tokens` and
 * `maxTokens`. Gemini appends its own word to some of them: `content_filter: PROHIBITED_CONTENT` is `content_filter`.
 */
function plainOf(word: string): string {
  return word
    .slice(0, word_characters_max)
    .trim()
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .replace(/[\s-]+/g, "_")
    .replace(/^(finish_?|stop_)?reason[._]/, "")
    .replace(/^((content|function_call)_filter):.*/, "$1");
}

/** The engine's word as the log shows it: short and printable. It is not a part of the answer. */
function shownReason(word: string): string {
  return word.slice(0, word_characters_max).replace(/[^ -~]/g, "?");
}
const word_characters_max = 64;

/** The reason for an answer's end, as far as the engine has given it. Of two reasons, the first known one counts. */
export class FinishReason {
  readonly #words: Words;
  #known: StopReason | null = null;
  /** The first unknown word that the engine gave for the answer's end. */
  #unknown: string | null = null;
  isFailed = false;

  constructor(words: Words) {
    this.#words = words;
  }

  take(word: unknown): void {
    const meaning = meaningOf(word, this.#words);
    if (meaning === "failed") this.isFailed = true;
    else if (meaning === undefined) this.#unknown ??= shownReason(String(word));
    else if (meaning !== "unfinished") this.#known ??= meaning;
  }

  /** The known reason; null if the engine has given no reason that ends an answer. */
  get known(): StopReason | null {
    return this.#known;
  }

  /** The unknown word of the engine that was treated as `stop`, because no known word came. */
  get unknown(): string | undefined {
    return this.#known === null ? (this.#unknown ?? undefined) : undefined;
  }
}
