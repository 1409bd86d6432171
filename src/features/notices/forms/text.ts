/** The text of a message's facts, for all forms that people read. Pure. */
import type { Message } from "../kinds.ts";

/** The facts that have a value. */
export function known(facts: Message["facts"]): (readonly [string, string | Date])[] {
  return facts.flatMap(([name, value]) => (value === null || value === "" ? [] : [[name, value] as const]));
}

/** Puts a text on one line, so that names that people chose cannot begin a new line or a header. */
export const oneLine = (text: string) => text.replace(/[\p{Cc}\u2028\u2029]+/gu, " ");

export function written(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** The text, cut to at most `chars_max` characters, never in the middle of a surrogate pair. */
export function cut(text: string, chars_max: number): string {
  if (text.length <= chars_max) return text;
  return `${text.slice(0, chars_max - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
