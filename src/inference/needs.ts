/**
 * Which capability of its model each thing asks for that a request may use (docs/design/service.md,
 * Capabilities): said here alone.
 * Codecs name the use and the field that it stands in; docs/protocols.md shows the table, and a test holds them together.
 * What is not in it asks for nothing; what merely hints at a capability is in hints.ts.
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

/** What a request needs, as its uses are met: of each capability the first field that asks for it. */
export class Needs {
  readonly list: Need[] = [];

  /** `param` is the wire path of the field; as a function where it would be put together for each of a thousand fields. */
  add(use: Use, param: string | (() => string)): void {
    if (!this.#has(use)) this.#note(use, typeof param === "string" ? param : param());
  }

  /** Of this field of a message: the same, and not even a function is made for each of them. */
  addAt(use: Use, message: number, field: string): void {
    if (!this.#has(use)) this.#note(use, `messages[${message}].${field}`);
  }

  #has(use: Use): boolean {
    const capability = capabilityOf[use];
    for (const known of this.list) if (known.capability === capability) return true;
    return false;
  }

  #note(use: Use, param: string): void {
    this.list.push({ capability: capabilityOf[use], param });
  }
}
