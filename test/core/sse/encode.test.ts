import { describe, expect, test } from "bun:test";
import { comment, encodeSse, SseDecoder } from "../../../src/core/sse/decode.ts";

describe("frames as they are written", () => {
  test("a named message has an event line, an unnamed one has none", () => {
    expect(encodeSse({ event: "ping", data: "{}" })).toBe("event: ping\ndata: {}\n\n");
    expect(encodeSse({ data: "[DONE]" })).toBe("data: [DONE]\n\n");
  });

  test("line breaks in data become data lines", () => {
    expect(encodeSse({ data: "a\nb\r\nc\rd" })).toBe("data: a\ndata: b\ndata: c\ndata: d\n\n");
  });

  test("a name with a line break is a defect, not a forged field", () => {
    expect(() => encodeSse({ event: "a\ndata: x", data: "" })).toThrow("line break");
  });

  test("a comment never becomes a message, whatever it holds", () => {
    expect(comment("ping")).toBe(": ping\n\n");
    expect(new SseDecoder().push(new TextEncoder().encode(comment("a\n\ndata: x\r\r\ndata: y")))).toEqual([]);
  });
});
