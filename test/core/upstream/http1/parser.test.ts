/** The parser of responses, for any bytes and however they are cut, compared with Node's own parser (llhttp). */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { cutAt } from "../../../harness/cut.ts";
import { nodeReads } from "./node-parser.ts";
import { bytesOf, reads, responses } from "./responses.ts";

const head = (...fields: string[]) => `HTTP/1.1 200 OK\r\n${fields.map((field) => `${field}\r\n`).join("")}\r\n`;

describe("a response", () => {
  const whole: [string, string, string, boolean?][] = [
    ["by its length", `${head("Content-Length: 5")}hello`, "hello"],
    ["without a body", head("content-length: 0"), ""],
    ["in chunks", `${head("transfer-encoding: chunked")}3\r\nhel\r\n2;a=b\r\nlo\r\n0\r\n\r\n`, "hello"],
    ["in chunks, with extensions", `${head("transfer-encoding: chunked")}5;a;b="\\"c"\r\nhello\r\n0\r\n\r\n`, "hello"],
    ["in chunks, with trailers", `${head("Transfer-Encoding: Chunked")}5\r\nhello\r\n0\r\nx: y\r\n\r\n`, "hello"],
    ["until the connection closes", `${head("content-type: text/plain")}hello`, "hello", true],
    [
      "behind interim ones",
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n${head("content-length: 2")}ok`,
      "ok",
    ],
    ["that has no body by its status", "HTTP/1.1 204 No Content\r\n\r\n", ""],
    ["of HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhello", "hello", true],
    ["without a reason", "HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\nok", "ok"],
  ];
  for (const [what, text, body, closes] of whole) {
    test(`${what} is read whole, however it is cut`, () => {
      expect(reads([bytesOf(text)], closes)).toMatchObject({ body, end: "whole" });
      const bytewise = [...bytesOf(text)].map((byte) => new Uint8Array([byte]));
      expect(reads(bytewise, closes)).toEqual(reads([bytesOf(text)], closes));
    });
  }

  const malformed: [string, string][] = [
    ["with a length and chunks", `${head("content-length: 5", "transfer-encoding: chunked")}5\r\nhello\r\n0\r\n\r\n`],
    ["with two lengths", `${head("content-length: 5", "content-length: 6")}hello`],
    ["with a length twice", `${head("content-length: 5", "content-length: 5")}hello`],
    ["with a length below zero", head("content-length: -1")],
    ["with a length in another base", head("content-length: 0x10")],
    ["with a length beyond numbers", head("content-length: 99999999999999999999")],
    ["in a coding that nobody knows", head("transfer-encoding: gzip, chunked")],
    ["with a folded field", head("x: a", " b")],
    ["with a space before a colon", head("content-length : 5")],
    ["with a field without a name", head(": 5")],
    ["with a control character", head("x: a\0b")],
    ["with a bare line feed", "HTTP/1.1 200 OK\ncontent-length: 0\n\n"],
    ["of another version", "HTTP/2.0 200 OK\r\n\r\n"],
    ["of another protocol", "SSH-2.0-OpenSSH\r\n\r\n"],
    ["with a chunk too large for numbers", `${head("transfer-encoding: chunked")}fffffffffffffffff\r\n`],
    ["with a chunk below zero", `${head("transfer-encoding: chunked")}-1\r\n`],
    ["with a chunk that is longer than it says", `${head("transfer-encoding: chunked")}2\r\nhello\r\n0\r\n\r\n`],
    ["with a chunk that does not end", `${head("transfer-encoding: chunked")}2\r\nhello0\r\n\r\n`],
    ["with other bytes where a chunk ends", `${head("transfer-encoding: chunked")}2\r\nhe\n\r0\r\n\r\n`],
    ["that switches protocols", "HTTP/1.1 101 Switching\r\n\r\n"],
    ["behind interim ones without end", "HTTP/1.1 100 Continue\r\n\r\n".repeat(9)],
    ["with a line without end", `HTTP/1.1 200 OK\r\nx: ${"a".repeat(20_000)}`],
    ["with fields without end", head(...Array<string>(300).fill("x: y"))],
    ["with a head without end", head(...Array.from({ length: 100 }, (_, index) => `x${index}: ${"a".repeat(1000)}`))],
    ["with an extension that is none", `${head("transfer-encoding: chunked")}5;\x80a=b\r\nhello\r\n0\r\n\r\n`],
    ["with an extension without end", `${head("transfer-encoding: chunked")}5;${"a".repeat(2000)}`],
  ];
  for (const [what, text] of malformed) {
    test(`${what} is none`, () => expect(reads([bytesOf(text)]).end).toBe("malformed"));
  }

  test("that breaks off is none, however it ends", () => {
    const text = `${head("transfer-encoding: chunked")}5\r\nhello\r\n0\r\n\r\n`;
    for (let length = 0; length < text.length; length++) {
      expect(reads([bytesOf(text.slice(0, length))], true).end).toBe("malformed");
    }
  });

  test("with bytes behind its end says so", () => {
    expect(reads([bytesOf(`${head("content-length: 2")}okHTTP/1.1 200 OK\r\n`)]).end).toBe("malformed");
  });
});

const seed = 20_261_122;

test("any cut of any bytes is read alike", () => {
  fc.assert(
    fc.property(responses, fc.array(fc.nat(400), { maxLength: 12 }), fc.boolean(), (bytes, at, closes) => {
      expect(reads(cutAt(bytes, at), closes)).toEqual(reads([bytes], closes));
    }),
    { numRuns: 4_000, seed },
  );
});

test("what it takes for a whole response, Node's parser reads alike", () => {
  let whole = 0;
  fc.assert(
    fc.property(responses, fc.boolean(), (bytes, closes) => {
      const ours = reads([bytes], closes);
      if (ours.end !== "whole") return;
      whole += 1;
      const { status, body } = ours;
      expect(nodeReads(bytes, closes)).toMatchObject({ status, body });
    }),
    { numRuns: 20_000, seed },
  );
  // The test would prove nothing if the generator produced no whole responses.
  expect(whole).toBeGreaterThan(200);
});
