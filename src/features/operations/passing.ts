/**
 * An operation whose engines speak its shape already. Request and answer are passed on and not translated: everything by
 * which one such operation differs from another is a value of `Passing`.
 */
import type { ModelKind } from "../../core/inference/model.ts";
import type { Usage } from "../../core/inference/usage.ts";
import type { ResponseIdentity, UpstreamAsk } from "../../core/protocol/codec.ts";
import type { Dialect } from "../../core/protocol/dialect.ts";
import type { JsonObject } from "../../core/protocol/json.ts";
import type { Report } from "../../core/protocol/report.ts";
import type { Operation } from "../../core/store/ledger.ts";
import type { Sifting } from "./sieve.ts";

/** A request that has been checked. */
export interface PassedWire {
  model: string;
  stream?: boolean | null;
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
  /** The path below an engine's base URL. */
  path: string;
  idPrefix: string;
  inputs(wire: Wire): Inputs;
  /** The texts of the input, in order. */
  texts(wire: Wire): readonly string[];
  /** The engine's request: the client's fields in the engine's names. */
  encode(wire: Wire, ask: UpstreamAsk): JsonObject;
  /** The field that an engine of this dialect lacks, in words, and its path; null: it has all. */
  lacks?(wire: Wire, dialect: Dialect): { feature: string; param: string } | null;
  /** A new check of one answer: what is kept of it, and whether it is right. */
  checking(wire: Wire): Checking;
  /** The parts of the answer before and after the kept list. */
  around(wire: Wire, identity: ResponseIdentity): Around;
}

export interface Checking extends Sifting {
  /** Checks the number of items of an answer that is complete. Throws UnreadableAnswer. */
  complete(items: number): void;
  /** The engine's count; null if it gave none. */
  report(members: ReadonlyMap<string, unknown>): Report | null;
}

export interface Around {
  head: string;
  tail(usage: Usage): string;
}
