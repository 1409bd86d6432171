/** Tells whether two values mean the same in Messages, as a text and a list of one text block with that text do. */

import type { WireForms } from "../codec.ts";
import { isObject } from "../json.ts";

export const messagesForms: WireForms = {
  textOf(list) {
    const [block] = list;
    if (list.length !== 1 || !isObject(block) || block.type !== "text" || typeof block.text !== "string") return null;
    return Object.keys(block).length === 2 ? block.text : null;
  },
  isImplied: (name, value) => name === "is_error" && value === false,
};
