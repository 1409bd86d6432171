import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { encodeSse, SseDecoder, type SseMessage, SseOverflow } from "../../../src/core/sse/decode.ts";
import { cutAt } from "../../harness/cut.ts";
import { forAll } from "../protocol/for-all.ts";
import { decoded } from "./decoded.ts";

const utf8 = new TextEncoder();

const read = (text: string) => decoded([utf8.encode(text)]);

describe("the grammar of event streams", () => {
  const one = (data: string, event?: string) => ({ messages: [event ? { event, data } : { data }], end: "whole" });

  test.each([
    ["LF", "data: a\n\n", one("a")],
    ["CR LF", "data: a\r\n\r\n", one("a")],
    ["CR", "data: a\r\r", one("a")],
    ["mixed line ends", "event: e\rdata: a\r\ndata: b\n\r", one("a\nb", "e")],
    ["no space after the colon", "data:a\n\n", one("a")],
    ["one space is dropped, not two", "data:  a\n\n", one(" a")],
    ["several data lines", "data: a\ndata: b\ndata:\n\n", one("a\nb\n")],
    ["an empty data line is a message", "data:\n\n", one("")],
    ["a field without a colon", "data\n\n", one("")],
    ["a byte order mark", "\ufeffdata: a\n\n", one("a")],
    ["a U+FEFF before a later line is a letter of its field", "data: a\n\n\ufeffdata: b\n\n", one("a")],
    ["a U+FEFF further in stays", "data: \ufeffa\n\n", one("\ufeffa")],
    ["comments", ": ping\n\n:\ndata: a\n: in between\n\n", one("a")],
    ["id, retry and unknown fields", "id: 1\nretry: 5\nfoo: bar\ndata: a\n\n", one("a")],
    ["names that only begin like a field", "dataset: x\neventual: y\ndata: a\n\n", one("a")],
    ["field names are case-sensitive", "Data: x\ndata: a\n\n", one("a")],
    ["an event's name", "event: done\ndata: a\n\n", one("a", "done")],
    ["the last name counts", "event: x\nevent: done\ndata: a\n\n", one("a", "done")],
    ["an empty name is none", "event:\ndata: a\n\n", one("a")],
    ["a name without data is no message, and does not last", "event: x\n\ndata: a\n\n", one("a")],
    ["nothing", "", { messages: [], end: "whole" }],
    ["blank lines", "\n\r\n\r\n\n", { messages: [], end: "whole" }],
    ["cut before the blank line", "data: a\n", { messages: [], end: "unfinished" }],
    ["cut inside a line", "data: a\n\ndata: [DO", { messages: [{ data: "a" }], end: "unfinished" }],
  ])("%s", (_, text, expected) => expect(read(text)).toEqual(expected));

  test("a message is delivered by its blank line, not by what comes after it", () => {
    const decoder = new SseDecoder();
    expect(decoder.push(utf8.encode("data: a\r\n\r"))).toEqual([{ data: "a" }]);
    expect(decoder.push(utf8.encode("\ndata: b\n\n"))).toEqual([{ data: "b" }]);
  });

  test("a CR and an LF that come in two reads are one line end", () => {
    const chunks = ["data: a\r", "\ndata: b\r", "\n\r", "\n"].map((text) => utf8.encode(text));
    expect(decoded(chunks)).toEqual(one("a\nb"));
  });

  test("one read with many messages gives them all, in order", () => {
    const data = Array.from({ length: 1000 }, (_, index) => `${index}${index % 7 ? "" : " 水門 🌊"}`);
    const text = data.map((each) => `event: e\ndata: ${each}\n\n`).join("");
    expect(read(text).messages).toEqual(data.map((each) => ({ event: "e", data: each })));
  });

  test("a chunk may be reused by whoever read it", () => {
    const decoder = new SseDecoder();
    const chunk = utf8.encode("data: abc");
    decoder.push(chunk);
    chunk.fill(120);
    expect(decoder.push(utf8.encode("d\n\n"))).toEqual([{ data: "abcd" }]);
  });
});

describe("any cut of the bytes", () => {
  test("bytes that are no UTF-8 are read as a TextDecoder reads them, in one line and in several", () => {
    const odd = [0x20, 0x61, 0x80, 0x82, 0xac, 0xbb, 0xbf, 0xc0, 0xc2, 0xe2, 0xed, 0xa0, 0xef, 0xf0, 0x9f, 0x98, 0xff];
    const value = fc.array(fc.constantFrom(...odd), { minLength: 1, maxLength: 12 });
    const reader = new TextDecoder("utf-8", { ignoreBOM: true });
    forAll([fc.array(value, { minLength: 1, maxLength: 3 })], 2_000, (values) => {
      const bytes = values.flatMap((each) => [...utf8.encode("data: "), ...each, 0x0a, 0x0a]);
      const expected = values.map((each) => ({ data: reader.decode(new Uint8Array(each)) }));
      expect(decoded([new Uint8Array(bytes)]).messages).toEqual(expected);
    });
  });

  test("what was encoded is decoded as it was", () => {
    const word = fc.string({ unit: "grapheme", maxLength: 20 });
    const name = fc.stringMatching(/^[a-z_.]{1,20}$/);
    const message = fc.oneof(fc.record({ data: word }), fc.record({ event: name, data: word }));
    forAll([fc.array(message, { maxLength: 20 }), fc.array(fc.nat(), { maxLength: 10 })], 100, (messages, places) => {
      const expected = messages.map((each) => ({ ...each, data: each.data.replace(/\r\n?/g, "\n") }));
      const bytes = utf8.encode(messages.map(encodeSse).join(""));
      expect(decoded(cutAt(bytes, places))).toEqual({ messages: expected, end: "whole" });
    });
  });

  test("leaves out the data of events that nobody reads, and of no other", () => {
    const data = fc.array(fc.constantFrom("a", " ", ":", "data", "data:", "event: read", "é", "\n"), { maxLength: 6 });
    const text = data.map((words) => words.join(""));
    const named = fc.record({ event: fc.constantFrom("read", "unread"), data: text });
    const message: fc.Arbitrary<SseMessage> = fc.oneof(named, fc.record({ data: text }));
    forAll([fc.array(message, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 10 })], 1_000, (messages, places) => {
      const bytes = utf8.encode(messages.map(encodeSse).join(""));
      const decoder = new SseDecoder({ frame_bytes_max: 1 << 20 }, (event) => event === "read");
      const seen = cutAt(bytes, places).flatMap((chunk) => decoder.push(chunk));
      expect(seen).toEqual(messages.map((each) => (each.event === "unread" ? { ...each, data: "" } : each)));
      expect(decoder.isBetween).toBe(messages.length > 0);
    });
  });

  test("bounds the data of events that nobody reads, too", () => {
    const decoder = new SseDecoder({ frame_bytes_max: 100 }, () => false);
    expect(decoder.push(utf8.encode(`event: e\ndata: ${"a".repeat(80)}`))).toEqual([]);
    expect(() => decoder.push(utf8.encode("a".repeat(10)))).toThrow(SseOverflow);
  });
});

describe("bounds", () => {
  test("a message of exactly the limit passes, one byte more does not", () => {
    expect(decoded([utf8.encode("data: 3456\n\n")], 10).messages).toEqual([{ data: "3456" }]);
    expect(decoded([utf8.encode("data: 34567\n\n")], 10).end).toBe("overflow");
    expect(decoded([utf8.encode("data: 34567")], 10).end).toBe("overflow");
  });

  test("many small data lines without a blank line are bounded together", () => {
    expect(decoded([utf8.encode("data\n".repeat(100))], 400).end).toBe("overflow");
    expect(decoded([utf8.encode("data\n\n".repeat(100))], 400).messages).toHaveLength(100);
  });

  test("comments without end hold nothing", () => {
    expect(decoded([utf8.encode(": ping\n".repeat(1000))], 100)).toEqual({ messages: [], end: "whole" });
  });

  test("messages before an overflow are delivered, then every call throws", () => {
    const decoder = new SseDecoder({ frame_bytes_max: 10 });
    expect(decoder.push(utf8.encode("data: a\n\ndata: far too long\n\n"))).toEqual([{ data: "a" }]);
    expect(() => decoder.push(new Uint8Array())).toThrow(SseOverflow);
    expect(() => decoder.push(utf8.encode("data: b\n\n"))).toThrow("limit of 10 bytes");
    expect(() => decoder.end()).toThrow(SseOverflow);
  });

  test("time grows with the bytes, not with their square: single bytes, one huge line, only line ends", () => {
    const cpu_ms = (run: () => void) => {
      const before = process.cpuUsage();
      run();
      const used = process.cpuUsage(before);
      return (used.user + used.system) / 1000;
    };
    const size = 1 << 17;
    const huge = new Uint8Array(size).fill(97);
    huge.set(utf8.encode("data: "));
    for (const bytes of [huge, new Uint8Array(size).fill(13), new Uint8Array(size).fill(10)]) {
      // The measured time is 0.1 µs a byte; with time quadratic in the size of 2^17 bytes, it would take many seconds.
      expect(cpu_ms(() => decoded(cutAt(bytes, [...bytes.keys()])))).toBeLessThan(5000);
      expect(cpu_ms(() => decoded([bytes]))).toBeLessThan(500);
    }
  });
});
