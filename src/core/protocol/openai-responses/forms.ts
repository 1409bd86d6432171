/**
 * Whether two values mean the same in Responses. A text and a list of one text part do; so do a message with its type
 * and the same message without it.
 */

import type { WireForms } from "../codec.ts";
import { isObject } from "../json.ts";

export const responsesForms: WireForms = {
  textOf(list) {
    const [part] = list;
    if (list.length !== 1 || !isObject(part) || typeof part.text !== "string") return null;
    const size = Object.keys(part).length;
    const isPlain =
      (part.type === "input_text" && size === 2) ||
      (part.type === "output_text" && size === 3 && isEmptyList(part.annotations));
    return isPlain ? part.text : null;
  },
  isImplied: (name, value) =>
    (name === "type" && value === "message") ||
    (name === "detail" && value === "auto") ||
    (name === "annotations" && isEmptyList(value)),
};

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
