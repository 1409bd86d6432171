/**
 * An operation whose engines speak its shape already. Request and answer are passed on and not translated: everything by
 * which one such operation differs from another is a value of `Passing`.
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

/** A request that has been checked. */
export interface PassedWire {
  model: string;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean | null } | null;
}

/** The input of a request, as far as it is metered. */
export interface Inputs {
  /** The number of inputs, each of which has the model's context for itself. */
  count: number;
  /** The bytes of the largest one. */
  largest_bytes: number;
  /** The bytes that the engine reads once more, because they belong to several inputs. */
  more_bytes?: number;
  /** The searches that hosted services charge for. */
  searches?: number;
  /** The tokens of all, and those of the largest, if the client sent token ids; else null. */
  ids: { tokens: number; largest: number } | null;
  /** The most output tokens; undefined if the operation makes none. */
  outputTokens_max?: number;
}

export interface Passing<Wire extends PassedWire> {
  operation: Operation;
  kind: ModelKind;
  idPrefix: string;
  inputs(wire: Wire): Inputs;
  /** The texts of the input, in order. */
  texts(wire: Wire): readonly string[];
  /** The side that faces engines. */
  codecOf(held: HeldWire<Wire>, answer_bytes_max: number): CodecOf;
  /** The parts of the answer before and after the kept list. */
  around(wire: Wire, identity: ResponseIdentity): Around;
  /** Writes a streamed answer, if there is such. */
  encoder?(wire: Wire, context: StreamContext): StreamEncoder;
}

/** A check of one answer: what is kept of it, and whether it is right. */
export interface Checking extends Sifting {
  /** Checks the number of items of an answer that is complete. Throws UnreadableAnswer. */
  complete(items: number): void;
  /** The engine's count; null if it gave none. */
  report(members: ReadonlyMap<string, unknown>): Report | null;
  /** The text of the answer and the reason for its end, if it has any. */
  written?(): { text: string; reason: StopReason };
}

export interface Around {
  head: string;
  tail(usage: Usage): string;
}
