/**
 * Maps each use of a feature in a request to the capability that the model needs for it (docs/design/service.md,
 * Capabilities). Codecs name the use and its field. docs/protocols.md has the same table, and a test compares the two.
 * Uses that are not in the table need no capability. Hints, which are left out for a model that cannot use them, are in
 * request.ts.
 */
import type { Capability, Need } from "./request.ts";

export const capabilityOf = {
  tool: "tools",
  "call or result": "tools",
  image: "vision",
  file: "files",
  sound: "audio_input",
  "form of the answer": "structured_output",
  "log probabilities": "logprobs",
  "reasoning effort": "reasoning",
} as const satisfies Record<string, Capability>;

export type Use = keyof typeof capabilityOf;

/** Collects the needs of a request: for each capability, the first field that uses it. */
export class Needs {
  readonly list: Need[] = [];

  /**
   * Adds a use. `param`: the path of the field in the request; a function if a thousand fields may have the use and
   * only the first path is needed.
   */
  add(use: Use, param: string | (() => string)): void {
    if (!this.#has(use)) this.#note(use, typeof param === "string" ? param : param());
  }

  /** Adds a use in a field of the message with this number, without making a function for each message. */
  addAt(use: Use, message: number, field: string): void {
    if (!this.#has(use)) this.#note(use, `messages[${message}].${field}`);
  }

  #has(use: Use): boolean {
    const capability = capabilityOf[use];
    for (const need of this.list) if (need.capability === capability) return true;
    return false;
  }

  #note(use: Use, param: string): void {
    this.list.push({ capability: capabilityOf[use], param });
  }
}
