/**
 * Clients read the sentence of an engine's refusal if that sentence is known, and nothing else of the refusal.
 * Operators read the engine's text, without credentials and quoted values.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Fault } from "../../../src/core/inference/fault.ts";
import { dialects } from "../../../src/core/protocol/dialects.ts";
import { unquoted } from "../../../src/core/protocol/engine-text.ts";
import { callers, upstreams } from "./codecs.ts";
import { forAll } from "./for-all.ts";

interface Shown {
  error: { message: string; param?: string | null };
}
const toChat = (fault: Fault) => callers.chat.fault.encode(fault, "r") as Shown;
const toMessages = (fault: Fault) => callers.messages.fault.encode(fault, "r") as Shown;
const toResponses = (fault: Fault) => callers.responses.fault.encode(fault, "r") as Shown;
const refused = (message: string, more: object = {}) =>
  upstreams.chat.fault.decode(400, { error: { message, ...more } });

describe("a sentence that is known", () => {
  test.each([
    [
      "temperature must be in [0, 2], got 5.0. (parameter=temperature, value=5.0)",
      "temperature must be in [0, 2], got 5.0.",
    ],
    [
      "The tool specified in `tool_choice` does not match any of the specified `tools` (parameter=tool_choice)",
      "The tool specified in `tool_choice` does not match any of the specified `tools`.",
    ],
    [
      "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 6 instead.",
      "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 6 instead.",
    ],
    [
      "Unsupported parameter: 'temperature' is not supported with this model.",
      "Unsupported parameter: 'temperature' is not supported with this model.",
    ],
  ])("is the client's: %s", (said, shown) => {
    expect(toChat(refused(said)).error.message).toBe(shown);
  });

  test("has the names of fields that the client knows", () => {
    const fault = refused("max_tokens must be at least 1, got 0.", { param: "max_tokens" });
    expect(toResponses(fault).error).toMatchObject({
      message: "max_output_tokens must be at least 1, got 0.",
      param: "max_output_tokens",
    });
    const stop = refused(
      "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 6 instead.",
    );
    expect(toMessages(stop).error.message).toContain("Invalid 'stop_sequences': array too long");
  });

  test("names no model of the engine's", () => {
    const fault = upstreams.messages.fault.decode(400, {
      error: { message: "max_tokens: 9000 > 4096, which is the maximum allowed number of output tokens for secret-7b" },
    });
    expect(toMessages(fault).error.message).toContain(
      "9000 > 4096, which is the maximum allowed number of output tokens for this model",
    );
    expect(JSON.stringify([toChat(fault), toMessages(fault)])).not.toContain("secret");
  });

  test("with a hole that something else fills is none", () => {
    for (const said of [
      "secret_name must be in [0, 2], got 5.0",
      "temperature must be in [0, 2], got five secrets",
      "temperature must be in [0, 2], got 5.0secret",
      "model must be at least 1, got 0",
      "Prefix secret: temperature must be in [0, 2], got 5.0",
    ]) {
      const { error } = toChat(refused(said));
      expect(error.message).not.toContain("secret");
      expect(error.message).toStartWith("The model's engine cannot serve this request");
    }
  });

  test("lets nothing of another text through, whatever it is", () => {
    const marked = fc.string({ maxLength: 30 }).map((text) => `zq${text.replaceAll("{", "")}`);
    const patterns = fc.constantFrom(...dialects.generic.refusals.sentences);
    forAll([patterns, marked], 100, (pattern, word) => {
      const said = pattern.replace(/\{\w+\}/g, () => word);
      for (const shown of [toChat, toMessages, toResponses])
        if (pattern.includes("{")) expect(shown(refused(said)).error.message).not.toContain("zq");
    });
  });
});

describe("any other text", () => {
  test.each([
    ["Grammar error: Invalid type: objec", "because of 'response_format'"],
    [
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      "a content policy filters",
    ],
    ["Conversation roles must alternate user/assistant/user", "the order of its messages"],
    ["At most 0 image(s) may be provided in one request.", "an image, a file or sound"],
    ["Something that nobody has heard of", "Change the request's content"],
  ])("is told as our own sentence, with the thing that it is about: %s", (said, thing) => {
    const { message } = toChat(refused(said)).error;
    expect(message).toContain(thing);
    expect(message).toStartWith("The model's engine cannot serve this request");
    expect(message).not.toContain(said);
  });
});

describe("what operators read", () => {
  const text = (message: string) => unquoted(message);

  test("has no credentials and no quoted values, but names of fields", () => {
    expect(text("Unknown 'reasoning_content' in \"my private words\", and 'it isn't theirs' too")).toBe(
      "Unknown 'reasoning_content' in \"…\", and '…' too",
    );
    expect(text("bad key sk-abcdefghijklmnopqrstuvwxyz0123456789 for slk_0123456789abcdef")).toBe(
      "bad key <secret> for <key>",
    );
    expect(text("(parameter=stop, value=private words, number=3, value=5.0)")).toBe(
      "(parameter=stop, value=…, number=3, value=5.0)",
    );
    expect(text("cut 'in the middle of a quot")).toBe("cut '…'");
  });

  test("is short, and on one line", () => {
    expect(text(`a\n\tb\u0000c ${"d ".repeat(600)}`)).toStartWith("a b?c d");
    expect(text("e ".repeat(3000)).length).toBeLessThanOrEqual(500);
  });

  test("is nothing where the engine said nothing", () => {
    expect(text("  ")).toBe("");
    for (const body of [{}, null, "", { error: { code: 400 } }])
      expect(upstreams.chat.fault.decode(400, body).details.engineText).toBeUndefined();
  });
});
