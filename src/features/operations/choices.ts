/**
 * Reads the choices of completions, from complete and from streamed answers: texts and log probabilities stay as the
 * engine wrote them. Pure.
 */
import type { InferenceEvent, StopReason } from "../../core/inference/event.ts";
import type { Fault } from "../../core/inference/fault.ts";
import { FinishReason, isBlank } from "../../core/protocol/answer.ts";
import {
  type AnswerContext,
  type EngineDecoder,
  type EngineEvent,
  type ResponseIdentity,
  UnreadableAnswer,
} from "../../core/protocol/codec.ts";
import type { Dialect } from "../../core/protocol/dialect.ts";
import { dialects } from "../../core/protocol/dialects.ts";
import { isObject } from "../../core/protocol/json.ts";
import { usageReported } from "../../core/protocol/openai-usage.ts";
import { answerCutShort, errorOf, refusalFault, statusWithin } from "../../core/protocol/refusal.ts";
import type { Report } from "../../core/protocol/report.ts";
import type { Generated } from "./echo.ts";
import type { Checking } from "./passing.ts";
import { type Item, Sieve, type Sifting } from "./sieve.ts";

const members = ["usage", "timings", "x_groq", "error", "detail"];
const encoder = new TextEncoder();

/** One choice of an answer. `ending`: the finish reason to write, known when the choice has been read. */
class Choice implements Sifting {
  readonly list = "choices";
  readonly keeps = ["index", "text", "logprobs"];
  readonly reads = ["index", "text", "finish_reason"];
  readonly members = members;
  readonly #finish: FinishReason;
  readonly #ending: () => StopReason | null;
  text = "";
  hasLogprobs = false;

  constructor(finish: FinishReason, ending: () => StopReason | null) {
    this.#finish = finish;
    this.#ending = ending;
  }

  item(item: Item): string {
    const text = item.get("text")?.value;
    if ((item.get("index")?.value ?? 0) !== 0 || typeof text !== "string")
      throw new UnreadableAnswer("a choice has a wrong index, or no text");
    this.text += text;
    this.hasLogprobs ||= item.get("logprobs")?.kind === "object";
    this.#finish.take(item.get("finish_reason")?.value);
    const logprobs = item.has("logprobs") ? "" : ',"logprobs":null';
    return `${logprobs},"finish_reason":${JSON.stringify(this.#ending())}`;
  }
}

/** The check of the choices of an answer that is not streamed. */
export function choiceChecking({ dialect = dialects.generic }: AnswerContext, generated: Generated): Checking {
  const finish = new FinishReason(dialect.finishReasons);
  const choice = new Choice(finish, () => reasonOf(finish));
  return {
    list: choice.list,
    keeps: choice.keeps,
    reads: choice.reads,
    members,
    item: (item) => choice.item(item),
    complete(items) {
      if (items !== 1) throw new UnreadableAnswer("the answer has another number of choices than one");
    },
    report: (read) => reportIn(read, dialect),
    written: () => ({ text: generated(choice.text), reason: reasonOf(finish) }),
  };
}

function reasonOf(finish: FinishReason): StopReason {
  if (finish.isFailed || (finish.known === null && finish.unknown === undefined)) throw answerCutShort("finish_reason");
  return finish.known ?? "stop";
}

function reportIn(read: ReadonlyMap<string, unknown>, { usage }: Dialect): Report | null {
  return usageReported(Object.fromEntries(read), usage, "chat");
}

export class ChoiceDecoder implements EngineDecoder {
  readonly #identity: ResponseIdentity;
  readonly #dialect: Dialect;
  readonly #leftOut: AnswerContext["leftOut"];
  readonly #generated: Generated;
  readonly #finish: FinishReason;
  #isBegun = false;
  #isOver = false;

  constructor(
    identity: ResponseIdentity,
    { dialect = dialects.generic, leftOut }: AnswerContext,
    generated: Generated,
  ) {
    this.#identity = identity;
    this.#dialect = dialect;
    this.#leftOut = leftOut;
    this.#generated = generated;
    this.#finish = new FinishReason(dialect.finishReasons);
  }

  reads(): boolean {
    return true;
  }

  push(event: EngineEvent): InferenceEvent[] {
    const data = event.parsed ? JSON.stringify(event.parsed.value) : event.data.trim();
    // llama.cpp begins some streams with a `null`.
    if (this.#isOver || isBlank(event) || data === "null") return [];
    if (data === "[DONE]") return this.#ended(true);
    const choice = new Choice(this.#finish, () => null);
    const sieve = new Sieve(choice, this.#leftOut);
    sieve.push(encoder.encode(data));
    const error = sieve.members.get("error") ?? sieve.members.get("detail");
    if (error) return this.#failed(errorFault(error, this.#dialect));
    const report = reportIn(sieve.members, this.#dialect);
    // A chunk that only reports usage may have no choices. Others without them are errors in forms of their own.
    sieve.end({ needsList: report === null });
    if (this.#finish.isFailed) return this.#failed(answerCutShort("finish_reason"));
    return [...this.#written(choice, sieve.take()), ...(report ? [{ type: "usage", ...report } as const] : [])];
  }

  end(): InferenceEvent[] {
    return this.#ended(false);
  }

  /** A choice without text may have the log probabilities of a token, such as the first bytes of a character. */
  #written({ text, hasLogprobs }: Choice, bytes: Uint8Array): InferenceEvent[] {
    if (text === "" && !hasLogprobs) return [];
    const delta = this.#generated(text);
    const counted = delta === "" ? [] : [{ type: "part-delta", index: 0, delta } as const];
    return [...this.#beginning(), ...counted, { type: "passed", bytes }];
  }

  #beginning(): InferenceEvent[] {
    if (this.#isBegun) return [];
    this.#isBegun = true;
    return beginningOf(this.#identity);
  }

  /** Ends the answer. `[DONE]` ends it even if the engine gave no finish reason. */
  #ended(isDone: boolean): InferenceEvent[] {
    if (this.#isOver) return [];
    const { known, unknown } = this.#finish;
    if (known === null && unknown === undefined && !(isDone && this.#isBegun))
      return this.#failed(answerCutShort("finish_reason"));
    this.#isOver = true;
    return [...this.#beginning(), ...endOf(known ?? "stop")];
  }

  #failed(fault: Fault): InferenceEvent[] {
    this.#isOver = true;
    return [{ type: "response-failed", fault }];
  }
}

export function beginningOf(identity: ResponseIdentity): InferenceEvent[] {
  return [
    { type: "response-start", ...identity },
    { type: "part-start", index: 0, part: { kind: "text" } },
  ];
}

export function endOf(reason: StopReason): InferenceEvent[] {
  return [
    { type: "part-end", index: 0 },
    { type: "response-end", reason },
  ];
}

function errorFault(error: unknown, { refusals }: Dialect): Fault {
  return refusalFault(isObject(error) ? statusWithin(error) : 500, errorOf({ error }), refusals);
}
