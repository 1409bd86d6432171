/**
 * CONTINUATION: if an engine dies in the middle of a text, another is given the text so far, and continues it.
 * The caller sees one answer, and the run has one record. Only text is continued, never half a tool call:
 * docs/routing.md, Going on in mid-answer.
 */
import { type InferenceEvent, isPartStart } from "../../core/inference/event.ts";
import type { InferenceRequest } from "../../core/inference/request.ts";
import { nextAfter } from "../../core/routing/after.ts";
import type { Route } from "../../core/routing/catalog.ts";
import { isReadAsProduced } from "../../core/usage/attempt-request.ts";
import { type AttemptRequest, initialProgress, type RunRequest } from "../../core/usage/record.ts";
import { AskingAgain, type Batch, type Next, type Open } from "./asking-again.ts";

type Failed = Extract<InferenceEvent, { type: "response-failed" }>;

const continuations_max = 2;
/** The longest text that is kept, in UTF-16 code units. An answer with a longer text cannot be continued. */
const said_chars_max = 1024 * 1024;
/** The fewest code units that a token has on average. */
const chars_token = 4;

/**
 * The fields of `extra_params` in which vLLM, SGLang and llama.cpp take a format for the answer. An engine that
 * continues an answer would apply the format to its own part, from the format's beginning.
 */
const formFields = [
  "structured_outputs",
  "guided_json",
  "guided_regex",
  "guided_choice",
  "guided_grammar",
  "json_schema",
  "regex",
  "ebnf",
  "structural_tag",
  "grammar",
];

/**
 * Whether an answer to this request may be continued at another engine: only if it is a text without a required format.
 * A completion (`passed`) has no conversation to which the text so far could be added.
 */
export function mayGoOn(asked: Pick<RunRequest, "model" | "request" | "fetched">): boolean {
  const { model, request } = asked;
  const { format, toolChoice, compaction, turns, extra, passed } = request;
  if (!isReadAsProduced(asked) || format || compaction || passed || !model.routes.some(({ continues }) => continues))
    return false;
  if (formFields.some((name) => name in extra)) return false;
  const isForced = toolChoice?.kind === "required" || toolChoice?.kind === "tool";
  const mustCall = isForced || (toolChoice?.kind === "allowed" && toolChoice.mode === "required");
  return !mustCall && turns.at(-1)?.role !== "assistant";
}

export class Continuing extends AskingAgain {
  readonly #said = new Said();
  #continuations = 0;
  /** The routes that have failed in the middle of the answer. */
  readonly #failed: Route[] = [];
  /**
   * Maps the answer parts that the continuing engine sends to the parts of the whole answer; null before an engine
   * continues it.
   */
  #joint: Joint | null = null;

  constructor(open: Open, attemptRequest: AttemptRequest) {
    super(open, attemptRequest, { ...initialProgress(), isNeededToTheEnd: true });
  }

  async next(): Promise<Next> {
    const next = await this.latest.next();
    if (next.done) return next;
    const batch = this.#joint ? this.#joint.joined(next.value) : next.value;
    for (const event of batch) this.#said.take(event);
    const last = batch.at(-1);
    if (last?.type !== "response-failed") return { done: false, value: batch };
    const goesOn = await this.#goOn(last);
    return { done: false, value: [...batch.slice(0, -1), ...goesOn] };
  }

  /** The first events of the next engine, or the failure if there is none that can continue. */
  async #goOn(failure: Failed): Promise<Batch> {
    const continued = this.#continued();
    if (!continued) return [failure];
    this.#continuations += 1;
    const joint = new Joint(this.#said);
    this.#joint = joint;
    try {
      this.latest = this.open(continued, this.progress).events;
      const { done, value = [] } = await this.latest.next();
      const batch = joint.joined(value);
      const isBegun = !done && value.some(isPartStart);
      if (!isBegun) return [failure];
      for (const event of batch) this.#said.take(event);
      const last = batch.at(-1);
      return last?.type === "response-failed" ? [...batch.slice(0, -1), ...(await this.#goOn(last))] : batch;
    } catch {
      // No engine is left that could continue.
      return [failure];
    }
  }

  /** The request for the next engine; null if the answer cannot be continued. */
  #continued(): AttemptRequest | null {
    const { asked, signal, room } = this.attemptRequest;
    const { request, inputTokens, inputBytes } = asked;
    const { route, tried } = this.progress;
    const said = this.#said;
    const end = tried.at(-1)?.outcome;
    if (this.isOver || signal.aborted || this.#continuations === continuations_max) return null;
    if (!said.isText || end === undefined || nextAfter[end] !== "other") return null;
    if (endsWithin(said.text.trimEnd(), request.stop)) return null;
    if (route) this.#failed.push(route);
    const rest = Math.min(request.outputTokens_max ?? room.allowed, room.allowed) - said.tokens;
    if (rest <= 0) return null;
    return {
      ...this.attemptRequest,
      asked: {
        ...asked,
        own: null,
        request: goingOn(request, said, rest),
        inputTokens: inputTokens + said.tokens,
        inputBytes: inputBytes + said.text.length,
      },
      room: { allowed: rest, held: Math.max(0, room.held - said.tokens) },
      except: [...this.#failed],
    };
  }
}

/**
 * Whether the text ends inside a stop sequence. An engine that is given the first half of one does not recognize the
 * second, and would write beyond it.
 */
function endsWithin(text: string, stops: readonly string[]): boolean {
  return stops.some((stop) => {
    for (let length = stop.length - 1; length > 0; length--) if (text.endsWith(stop.slice(0, length))) return true;
    return false;
  });
}

/**
 * The request that continues this text. White space at the text's end is not sent, because a chat template may cut it;
 * the engine writes it again.
 */
function goingOn(request: InferenceRequest, said: Said, rest: number): InferenceRequest {
  const text = said.text.trimEnd();
  const capped = { ...request, ...(request.outputTokens_max === undefined ? {} : { outputTokens_max: rest }) };
  if (text === "") return { ...capped, continues: false };
  return {
    ...capped,
    turns: [...request.turns, { role: "assistant", parts: [{ kind: "text", text }] }],
    continues: true,
  };
}

/** The text that the caller has received, if the answer so far is one text. */
class Said {
  text = "";
  #deltas = 0;
  #parts = 0;
  #isOther = false;

  /** Whether the answer so far is one open text and nothing else. */
  get isText(): boolean {
    return this.#parts === 1 && !this.#isOther;
  }

  /**
   * The number of tokens in the text, or more. It is at least the number of deltas, because most engines send one token
   * in each delta.
   */
  get tokens(): number {
    return Math.max(this.#deltas, Math.ceil(this.text.length / chars_token));
  }

  take(event: InferenceEvent): void {
    if (event.type === "part-start") {
      this.#parts += 1;
      if (event.part.kind !== "text") this.#isOther = true;
    } else if (event.type === "part-end") this.#isOther = true;
    else if (event.type === "part-delta" && this.isText) {
      this.#deltas += 1;
      this.text += event.delta;
      if (this.text.length > said_chars_max) this.#isOther = true;
    }
  }
}

/**
 * Joins the parts of the continuing engine to those of the answer: its first text part continues the part that the
 * failed engine left open. Its usage reports are left out, because they count the text so far as input, and not as
 * output.
 */
class Joint {
  /** The white space at the end of the text that the engine has not yet written again. */
  #space: string;
  #isFirst = true;
  /**
   * 1 if the continuing engine began with a part that is not text, so that the open text has ended and the engine's
   * parts get numbers that are one higher; else 0.
   */
  #shift = 0;

  constructor(said: Said) {
    this.#space = said.text.slice(said.text.trimEnd().length);
  }

  joined(batch: Batch): Batch {
    return batch.flatMap((event) => this.#joined(event));
  }

  #joined(event: InferenceEvent): Batch {
    switch (event.type) {
      case "response-start":
      case "usage":
        return [];
      case "part-start":
        return this.#started(event);
      case "part-delta": {
        const delta = event.index === 0 && this.#shift === 0 ? this.#trimmed(event.delta) : event.delta;
        return delta === "" ? [] : [{ ...event, delta, index: event.index + this.#shift }];
      }
      case "part-end":
        return [{ ...event, index: event.index + this.#shift }];
      default:
        return [event];
    }
  }

  #started(event: Extract<InferenceEvent, { type: "part-start" }>): Batch {
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    if (!isFirst) return [{ ...event, index: event.index + this.#shift }];
    if (event.part.kind === "text") return [];
    this.#shift = 1;
    return [
      { type: "part-end", index: 0 },
      { ...event, index: event.index + 1 },
    ];
  }

  #trimmed(delta: string): string {
    const space = this.#space;
    let again = 0;
    while (again < space.length && delta[again] === space[again]) again++;
    this.#space = again === delta.length ? space.slice(again) : "";
    return delta.slice(again);
  }
}
