/**
 * Reads one HTTP/1.1 response from bytes as they arrive. The result is the same however the bytes are split. It is
 * strict, and bounded in everything but the body: docs/design/runtime.md, Towards engines. Pure.
 */
import { fieldsOf, headOf, MalformedResponse, type ResponseHead } from "./head.ts";

export interface ResponseSink {
  /** Called with the final head. Interim heads (1xx) are skipped. */
  head(head: ResponseHead): void;
  body(bytes: Uint8Array): void;
}

const line_bytes_max = 16 * 1024;
const head_bytes_max = 64 * 1024;
const lines_max = 256;
const interims_max = 8;
const chunk_bytes_max = 2 ** 40;
/** The most bytes of a chunk's extensions. Their values are not used, but their grammar is checked. */
const extension_bytes_max = 1024;
const token = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/.source;
const quoted = /"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"/.source;
const extension = `${token}(?:=(?:${token}|${quoted}))?`;
const extensions = new RegExp(`^${extension}(?:;${extension})*$`);

const cr = 13;
const lf = 10;
const semicolon = 59;

type State =
  | "head"
  | "length"
  | "close"
  | "size"
  | "extension"
  | "size-end"
  | "chunk"
  | "chunk-cr"
  | "chunk-lf"
  | "trailer"
  | "over";

export class ResponseParser {
  readonly #sink: ResponseSink;
  #state: State = "head";
  /** The received part of a head or a trailer. */
  #text = "";
  #lines = 0;
  #line_bytes = 0;
  #last = 0;
  /** The received part of a chunk's extensions. */
  #extensions = "";
  #interims = 0;
  /** The bytes that are left of the body or the chunk; while the size of a chunk is read, the size so far. */
  #left = 0;
  #digits = 0;

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  get isOver(): boolean {
    return this.#state === "over";
  }

  /** Reads the next bytes. Throws MalformedResponse; no more bytes may be pushed after that. */
  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      switch (this.#state) {
        case "head":
        case "trailer":
          at = this.#textual(bytes, at);
          break;
        case "length":
        case "chunk":
          at = this.#counted(bytes, at);
          break;
        case "close":
          this.#sink.body(at === 0 ? bytes : bytes.subarray(at));
          return;
        case "over":
          throw new MalformedResponse("there are bytes behind the end of the answer");
        default:
          this.#frame(bytes[at]!);
          at += 1;
      }
    }
  }

  /** Must be called when the peer has closed without an error. Throws if the response was not complete. */
  close(): void {
    if (this.#state === "close") this.#state = "over";
    else if (this.#state !== "over") throw new MalformedResponse("the connection closed in the middle of the answer");
  }

  /** Collects lines up to the empty line, and then parses them together. */
  #textual(bytes: Uint8Array, from: number): number {
    let at = from;
    let isWhole = false;
    while (at < bytes.length && !isWhole) {
      const end = bytes.indexOf(lf, at);
      const to = end < 0 ? bytes.length : end + 1;
      this.#line_bytes += to - at;
      if (this.#line_bytes > line_bytes_max) throw new MalformedResponse("a line of the head is too long");
      if (this.#text.length + to - from > head_bytes_max) throw new MalformedResponse("the head is too large");
      if (end >= 0) isWhole = this.#endsLine(end > from ? bytes[end - 1]! : this.#last);
      at = to;
    }
    this.#last = bytes[at - 1]!;
    // Bytes of another protocol are recognised at the beginning, because they may never contain a line end.
    const isBeginning = this.#state === "head" && this.#text.length < opening.length;
    this.#text += latin1(bytes, from, at);
    if (isBeginning && !this.#text.startsWith(opening.slice(0, this.#text.length))) {
      throw new MalformedResponse("it does not begin as HTTP/1.1 does");
    }
    if (isWhole) this.#endText();
    return at;
  }

  /** Ends a line. Returns whether the line was empty. */
  #endsLine(before: number): boolean {
    if (before !== cr) throw new MalformedResponse("a line does not end in CR LF");
    const isEmpty = this.#line_bytes === 2;
    this.#line_bytes = 0;
    this.#lines += isEmpty ? 0 : 1;
    if (this.#lines > lines_max) throw new MalformedResponse("there are too many header fields");
    return isEmpty;
  }

  #endText(): void {
    const text = this.#text;
    this.#text = "";
    this.#lines = 0;
    this.#last = 0;
    if (this.#state === "head") this.#begin(headOf(text));
    // The trailer is not used, but must consist of header fields.
    else {
      fieldsOf(text);
      this.#state = "over";
    }
  }

  #begin(head: ResponseHead): void {
    if (head.status < 200) {
      if (head.status === 101) throw new MalformedResponse("it switches protocols, which nobody asked for");
      this.#interims += 1;
      if (this.#interims > interims_max) throw new MalformedResponse("there are too many interim answers");
      return;
    }
    this.#sink.head(head);
    const { framing } = head;
    if (framing.by === "chunks") this.#state = "size";
    else if (framing.by === "close") this.#state = "close";
    else {
      this.#state = "length";
      this.#left = framing.bytes;
      if (this.#left === 0) this.#state = "over";
    }
  }

  #counted(bytes: Uint8Array, from: number): number {
    const to = Math.min(bytes.length, from + this.#left);
    this.#sink.body(from === 0 && to === bytes.length ? bytes : partOf(bytes, from, to));
    this.#left -= to - from;
    if (this.#left > 0) return to;
    if (this.#state === "chunk") this.#state = "chunk-cr";
    else this.#state = "over";
    return to;
  }

  /** Takes one byte of the framing between two chunks. */
  #frame(byte: number): void {
    switch (this.#state) {
      case "size":
        this.#size(byte);
        break;
      case "extension":
        this.#extension(byte);
        break;
      case "size-end":
        must(byte, lf);
        this.#state = this.#left === 0 ? "trailer" : "chunk";
        this.#digits = 0;
        break;
      case "chunk-cr":
        must(byte, cr);
        this.#state = "chunk-lf";
        break;
      default:
        must(byte, lf);
        this.#left = 0;
        this.#state = "size";
    }
  }

  #size(byte: number): void {
    const digit = hexadecimal(byte);
    if (digit >= 0) {
      this.#left = this.#left * 16 + digit;
      this.#digits += 1;
      if (this.#left > chunk_bytes_max || this.#digits > 16) throw new MalformedResponse("a chunk is too large");
    } else if (this.#digits > 0 && byte === cr) {
      this.#state = "size-end";
    } else if (this.#digits > 0 && byte === semicolon) {
      this.#state = "extension";
    } else {
      throw new MalformedResponse("a chunk's size is no number");
    }
  }

  #extension(byte: number): void {
    if (byte !== cr) {
      this.#extensions += String.fromCharCode(byte);
      if (this.#extensions.length <= extension_bytes_max) return;
    } else if (extensions.test(this.#extensions)) {
      this.#extensions = "";
      this.#state = "size-end";
      return;
    }
    throw new MalformedResponse("a chunk's extension is malformed");
  }
}

function must(byte: number, wanted: number): void {
  if (byte !== wanted) throw new MalformedResponse("a chunk does not end where it said");
}

const opening = "HTTP/1.";

function hexadecimal(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

/**
 * A part of the bytes: a copy if the buffer is small, because a view would make the whole a shared buffer, which costs
 * more. All parts of one buffer are either copies or views, so that their memory can be released.
 */
function partOf(bytes: Uint8Array, from: number, to: number): Uint8Array {
  if (bytes.length > copied_bytes_max) return bytes.subarray(from, to);
  const part = new Uint8Array(to - from);
  Buffer.prototype.copy.call(bytes, part, 0, from, to);
  return part;
}
const copied_bytes_max = 1500;

function latin1(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.prototype.toString.call(bytes, "latin1", from, to);
}
