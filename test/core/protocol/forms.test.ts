/**
 * Equivalent forms of a request: they mean the same to an engine, so a body that comes in one of them may be passed on
 * as it is.
 */
import { describe, expect, test } from "bun:test";
import { messagesForms } from "../../../src/core/protocol/anthropic-messages/codec.ts";
import { singleForms } from "../../../src/core/protocol/codec.ts";
import { responsesForms } from "../../../src/core/protocol/openai-responses/codec.ts";

const text = (more: object = {}) => ({ type: "text", text: "hi", ...more });
const input = (more: object = {}) => ({ type: "input_text", text: "hi", ...more });
const output = (more: object = {}) => ({ type: "output_text", text: "hi", annotations: [], ...more });

describe("a list is a text", () => {
  test("in Messages where it has one text block and nothing else", () => {
    expect(messagesForms.textOf([text()])).toBe("hi");
    const others = [
      [],
      [text(), text()],
      [text({ cache_control: { type: "ephemeral" } })],
      [text({ type: "thinking" })],
      [{ type: "text" }],
      ["hi"],
    ];
    for (const list of others) expect([list, messagesForms.textOf(list)]).toEqual([list, null]);
  });

  test("in Responses where it has one part of text without annotations", () => {
    for (const part of [input(), output()]) expect(responsesForms.textOf([part])).toBe("hi");
    const others = [
      [],
      [input(), input()],
      [input({ annotations: [] })],
      [output({ annotations: [{ type: "url_citation" }] })],
      [output({ logprobs: [] })],
      [text()],
      ["hi"],
    ];
    for (const list of others) expect([list, responsesForms.textOf(list)]).toEqual([list, null]);
  });

  test("never in chat completions, where engines read the two differently", () => {
    expect(singleForms.textOf([text()])).toBe(null);
  });
});

test("what a field says that may as well be missing", () => {
  const implied = [
    ...[messagesForms.isImplied("is_error", false), responsesForms.isImplied("type", "message")],
    ...[responsesForms.isImplied("detail", "auto"), responsesForms.isImplied("annotations", [])],
  ];
  expect(implied).toEqual([true, true, true, true]);
  const said = [
    ...[messagesForms.isImplied("is_error", true), messagesForms.isImplied("type", "message")],
    ...[responsesForms.isImplied("detail", "high"), responsesForms.isImplied("annotations", [{}])],
    singleForms.isImplied("is_error", false),
  ];
  expect(said).toEqual([false, false, false, false, false]);
});
