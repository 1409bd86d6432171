/**
 * Translates infill requests, which ask for a text between two given texts: llama.cpp has a path and a JSON format of
 * its own for them (docs/engines.md). Pure.
 */
import type { InferenceEvent, StopReason } from "../../core/inference/event.ts";
import { isBlank, jsonOf } from "../../core/protocol/answer.ts";
import {
  type AnswerReader,
  type EngineDecoder,
  type EngineEvent,
  type ResponseIdentity,
  UnreadableAnswer,
} from "../../core/protocol/codec.ts";
import { dialects } from "../../core/protocol/dialects.ts";
import { isObject, type JsonObject, textOf } from "../../core/protocol/json.ts";
import { answerCutShort, errorOf, refusalFault, statusWithin } from "../../core/protocol/refusal.ts";
import { reportOf } from "../../core/protocol/report.ts";
import { Bytes } from "./bytes.ts";
import { beginningOf, endOf } from "./choices.ts";
import { promptOf } from "./completion-input.ts";
import { CompletionsRequest } from "./contract.ts";
import type { EngineShape } from "./engine.ts";

/** The fields of the contract that have the same name and form at `/infill`. */
const alike = new Set(["temperature", "top_p", "seed", "frequency_penalty", "presence_penalty"]);
/** All other fields of the contract. Fields in neither set are the model's `extra_params`, which are sent unchanged. */
const translated = new Set(Object.keys(CompletionsRequest.properties).filter((name) => !alike.has(name)));

export const infill: EngineShape<CompletionsRequest> = {
  // The path is not below `/v1`, but beside it.
  path: "/../infill",
  encode: (wire, { stream }, { outputTokens_max }) => ({
    ...Object.fromEntries(Object.entries(wire).filter(([name]) => !translated.has(name))),
    input_prefix: promptOf(wire),
    input_suffix: wire.suffix ?? "",
    n_predict: outputTokens_max,
    stream,
    stop: typeof wire.stop === "string" ? [wire.stop] : wire.stop,
  }),
  lacks: (wire) => (typeof promptOf(wire) === "string" ? null : { feature: "a suffix of token ids", param: "suffix" }),
  reader: (_, identity, __, answer_bytes_max) => new InfillReader(identity, answer_bytes_max),
  decoder: (_, identity) => new InfillDecoder(identity),
};

class InfillDecoder implements EngineDecoder {
  readonly #identity: ResponseIdentity;
  #isBegun = false;
  #isOver = false;

  readonly #isWhole: boolean;

  constructor(identity: ResponseIdentity, isWhole = false) {
    this.#identity = identity;
    this.#isWhole = isWhole;
  }

  reads(): boolean {
    return true;
  }

  push(event: EngineEvent): InferenceEvent[] {
    if (this.#isOver || isBlank(event) || event.data.trim() === "[DONE]") return [];
    let value: unknown;
    try {
      value = jsonOf(event);
    } catch (cause) {
      throw new UnreadableAnswer("an event is no JSON", { cause });
    }
    return isObject(value) ? this.read(value) : [];
  }

  end(): InferenceEvent[] {
    return this.#isOver ? [] : [{ type: "response-failed", fault: answerCutShort("its last event") }];
  }

  read(value: JsonObject): InferenceEvent[] {
    if (isObject(value.error)) {
      this.#isOver = true;
      const fault = refusalFault(statusWithin(value.error), errorOf(value), dialects.generic.refusals);
      return [{ type: "response-failed", fault }];
    }
    const events = this.#isBegun ? [] : beginningOf(this.#identity);
    this.#isBegun = true;
    const delta = textOf(value.content);
    const reason = value.stop_type === "limit" ? "length" : "stop";
    if (delta !== "") events.push({ type: "part-delta", index: 0, delta });
    if (delta !== "" || this.#isWhole)
      events.push({ type: "passed", bytes: choiceOf(delta, this.#isWhole ? reason : null) });
    if (value.stop !== true) return events;
    this.#isOver = true;
    const cached = isObject(value.timings) ? value.timings.cache_n : undefined;
    const counts = { prompt: value.tokens_evaluated, output: value.tokens_predicted };
    const report = reportOf({ ...counts, cached, written: undefined, reasoning: undefined }, { inclusive: true });
    if (report) events.push({ type: "usage", ...report });
    return [...events, ...endOf(reason)];
  }
}

function choiceOf(text: string, finish_reason: StopReason | null): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ index: 0, text, logprobs: null, finish_reason }));
}

/** Reads an answer that is not streamed. It has the same form as the last event of a stream. */
class InfillReader implements AnswerReader {
  readonly #decoder: InfillDecoder;
  readonly #bytes_max: number;
  readonly #bytes = new Bytes();

  constructor(identity: ResponseIdentity, bytes_max: number) {
    this.#decoder = new InfillDecoder(identity, true);
    this.#bytes_max = bytes_max;
  }

  get held_bytes(): number {
    return this.#bytes.length;
  }

  get next_bytes(): number {
    return 64 * 1024;
  }

  push(pieces: readonly Uint8Array[]): InferenceEvent[] {
    for (const piece of pieces) this.#bytes.add(piece);
    if (this.#bytes.length > this.#bytes_max)
      throw new UnreadableAnswer(`the answer is larger than ${this.#bytes_max} bytes`);
    return [];
  }

  end(): InferenceEvent[] {
    const data = new TextDecoder().decode(this.#bytes.take());
    const events = this.#decoder.push({ data });
    return [...events, ...this.#decoder.end()];
  }
}
