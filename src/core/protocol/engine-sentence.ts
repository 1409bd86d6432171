/**
 * Sentences of engines that clients may read: patterns with named holes, which only numbers and paths of fields can
 * fill. All other text of an engine is shown to operators only. Pure.
 */
import type { Protocol } from "../inference/request.ts";
import type { Refusals } from "./dialect.ts";
import { type FieldNamer, fieldIn, type NamedField } from "./fields.ts";

const holes = {
  number: "(-?\\d{1,15}(?:\\.\\d{1,15})?)",
  field: "([a-z_]{1,64}(?:[.[][a-z0-9_\\]]{1,64}){0,8})",
  /** The engine's own name for the model, which is not shown. */
  model: "\\S{1,200}",
} as const;

/** A recognised sentence: its texts, and between them numbers and fields. */
export type Sentence = readonly (string | NamedField)[];

/** The first known sentence with which the text begins; null if none. `named` checks the path of a field. */
export function sentenceIn(text: string, { sentences }: Refusals, named: FieldNamer): Sentence | null {
  for (const pattern of sentences) {
    const pieces = pattern.split(/\{(number|field|model)\}/);
    const source = pieces.map((piece, at) => (at % 2 === 0 ? literal(piece) : holes[piece as keyof typeof holes]));
    const found = new RegExp(`^${source.join("")}(?![\\w.]*\\w)`).exec(text);
    if (!found) continue;
    const sentence = filled(pieces, found.slice(1), named);
    if (sentence) return sentence;
  }
  return null;
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

function filled(pieces: readonly string[], groups: string[], named: FieldNamer): Sentence | null {
  const out: (string | NamedField)[] = [];
  for (const [at, piece] of pieces.entries()) {
    if (at % 2 === 0) out.push(piece);
    else if (piece === "model") out.push("this model");
    else if (piece === "number") out.push(groups.shift()!);
    else {
      const field = named(groups.shift()!);
      if (!field) return null;
      out.push(field);
    }
  }
  return out;
}

/** The sentence with its fields named in this protocol; null if the protocol has no name for one of the fields. */
export function sentenceFor(protocol: Protocol, sentence: Sentence): string | null {
  let text = "";
  for (const piece of sentence) {
    const label = typeof piece === "string" ? piece : fieldIn(protocol, piece);
    if (label === undefined) return null;
    text += label;
  }
  return text.endsWith(".") ? text : `${text}.`;
}
