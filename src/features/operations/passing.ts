/**
 * An operation for which engines speak the same protocol as clients. Request and answer are passed on without
 * translation; the differences between such operations are a value of `Passing`.
 */

import type { StopReason } from "../../core/inference/event.ts";
import type { ModelKind } from "../../core/inference/model.ts";
import type { Usage } from "../../core/inference/usage.ts";
import type { ResponseIdentity, StreamContext, StreamEncoder } from "../../core/protocol/codec.ts";
import type { Report } from "../../core/protocol/report.ts";
import type { CodecOf } from "../../core/routing/catalog.ts";
import type { Operation } from "../../core/store/ledger.ts";
import type { HeldWire } from "./engine.ts";
import type { Sifting } from "./sieve.ts";

export interface PassedWire {
  model: string;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean | null } | null;
}

export interface Inputs {
  /** The number of inputs. Each may use the model's whole context. */
  count: number;
  largest_bytes: number;
  /**
   * Set if the engine is asked to cut each input: the bytes of the part that is never cut, and the most tokens of the
   * rest.
   */
  cut?: { whole_bytes: number; rest_tokens: number };
  /** The bytes that the engine reads more than once, because they belong to several inputs. */
  more_bytes?: number;
  /** The number of searches, for which hosted services charge. */
  searches?: number;
  /** The number of tokens in all inputs together and in the largest one, if the client sent token ids; else null. */
  ids: { tokens: number; largest: number } | null;
  /** The most output tokens; undefined if the operation has no output. */
  outputTokens_max?: number;
}

export interface Passing<Wire extends PassedWire> {
  operation: Operation;
  kind: ModelKind;
  idPrefix: string;
  inputs(wire: Wire): Inputs;
  /** The texts of all inputs, in order. */
  texts(wire: Wire): readonly string[];
  codecOf(held: HeldWire<Wire>, answer_bytes_max: number): CodecOf;
  /** The parts of the answer before and after the list that is passed on. */
  around(wire: Wire, identity: ResponseIdentity): Around;
  encoder?(wire: Wire, context: StreamContext): StreamEncoder;
}

/** Checks one answer: which fields are passed on, and whether it is valid. */
export interface Checking extends Sifting {
  /** Checks the number of items of an answer that is complete. Throws UnreadableAnswer. */
  complete(items: number): void;
  /** The engine's report of usage; null if it gave none. */
  report(members: ReadonlyMap<string, unknown>): Report | null;
  /** The text of the answer and its finish reason, if the operation writes text. */
  written?(): { text: string; reason: StopReason };
}

export interface Around {
  head: string;
  tail(usage: Usage): string;
}
