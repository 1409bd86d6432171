// For the parser's tests and its fuzzer: the parser's reading of bytes, and a generator of responses of all kinds.

import fc from "fast-check";
import { ResponseParser } from "../../../../src/core/upstream/http1/parser.ts";

export interface Read {
  status: number | null;
  /** The header fields that these tests know, with their values. */
  headers: [string, string | undefined][];
  body: string;
  end: "whole" | "open" | "malformed";
}

const names = ["content-length", "transfer-encoding", "connection", "keep-alive", "content-type", "link", "x-a", "x"];

/** The parser's reading of the pieces; `closes` tells whether the peer closes after them. */
export function reads(pieces: readonly Uint8Array[], closes = false): Read {
  const read: Read = { status: null, headers: [], body: "", end: "open" };
  const body: Uint8Array[] = [];
  const parser = new ResponseParser({
    head: ({ status, headers }) =>
      Object.assign(read, { status, headers: names.map((one) => [one, headers.get(one)]) }),
    body: (bytes) => void body.push(bytes.slice()),
  });
  try {
    for (const piece of pieces) parser.push(piece);
    if (closes) parser.close();
    if (parser.isOver) read.end = "whole";
  } catch {
    read.end = "malformed";
  }
  return { ...read, body: Buffer.concat(body).toString("latin1") };
}

export const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, "latin1"));

// The pieces from which responses and attacks are composed.
const name = fc.constantFrom(
  "content-length",
  "Content-Length",
  "transfer-encoding",
  "connection",
  "x-a",
  "",
  "x a",
  "keep-alive",
);
const value = fc.constantFrom(
  "5",
  "0",
  "05",
  "+5",
  "5, 5",
  "chunked",
  "Chunked",
  "gzip",
  "close",
  "keep-alive",
  "",
  "a\tb",
  "é",
  "\x01",
  "timeout=5",
);
const colon = fc.constantFrom(":", ": ", " :", "");
const end = fc.constantFrom("\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r");
const field = fc.tuple(name, colon, value, end).map((parts) => parts.join(""));
const first = fc.constantFrom(
  "HTTP/1.1 200 OK",
  "HTTP/1.0 200 OK",
  "HTTP/1.1 204 No",
  "HTTP/1.1 200",
  "HTTP/1.1 20 OK",
  "HTTP/1.1 100 Go",
  "HTTP/9.9 200 OK",
);
const chunk = fc.constantFrom(
  "5\r\nhello\r\n",
  "0\r\n\r\n",
  "A\r\n0123456789\r\n",
  "5;a=b\r\nhello\r\n",
  "5\r\nhel",
  "x\r\n",
  "05\r\nhello\r\n",
  "hello",
  "0\r\nx: y\r\n\r\n",
);
/** Whole responses, truncated ones, and attacks. */
export const responses = fc
  .tuple(first, end, fc.array(field, { maxLength: 4 }), end, fc.array(chunk, { maxLength: 4 }))
  .map(([line, after, fields, blank, chunks]) => bytesOf(line + after + fields.join("") + blank + chunks.join("")));
