/**
 * The heads of HTTP/1.1: the head of a request is written, and that of a response is parsed, as strictly as RFC 9112
 * allows. Pure.
 */

/** Shared by all responses that begin with the same lines. */
export interface ResponseHead {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly framing: Framing;
  /** Whether another request may be sent on the connection after this response. */
  readonly keepsOpen: boolean;
}

export type Framing = { by: "length"; readonly bytes: number } | { by: "chunks" } | { by: "close" };

/** Thrown for bytes that are no HTTP/1.1 response, or that are a response larger than the limits. */
export class MalformedResponse extends Error {
  override readonly name = "MalformedResponse";
}

const statusLine = /^HTTP\/1\.[01] [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/;
const fieldLines = /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n$/;
const wholeNumber = /^\d{1,15}$/;
const lineEnd = "\r\n";

/** Heads of the last answers, by their lines: most engines send the same head all second long. */
const recent = new Map<string, ResponseHead>();
const recent_max = 64;
const recentChars_max = 1024;

/** Parses the head in these lines, each with its line end; the last line is empty. Throws MalformedResponse. */
export function headOf(lines: string): ResponseHead {
  const known = recent.get(lines);
  if (known) return known;
  const head = parsedHead(lines);
  if (lines.length > recentChars_max) return head;
  if (recent.size >= recent_max) recent.clear();
  recent.set(lines, head);
  return head;
}

function parsedHead(lines: string): ResponseHead {
  if (!statusLine.test(lines)) throw new MalformedResponse("the status line is not HTTP/1.1's");
  const status = Number(lines.slice(9, 12));
  const headers = fieldsOf(lines.slice(lines.indexOf(lineEnd) + lineEnd.length));
  const framing = framingOf(status, headers);
  const keepsOpen = framing.by !== "close" && persists(lines.startsWith("HTTP/1.1"), headers);
  return { status, headers, framing, keepsOpen };
}

/**
 * Parses the header fields. Folded lines, spaces before a colon and control characters are refused: they are used to
 * smuggle requests.
 */
export function fieldsOf(lines: string): HeaderFields {
  if (!fieldLines.test(lines)) throw new MalformedResponse("a header field is malformed");
  return new HeaderFields(lines);
}

/** Header fields, each of which is parsed only when it is read: most never are. */
export class HeaderFields {
  readonly #lines: string;

  constructor(lines: string) {
    this.#lines = lines;
  }

  /** The value of a field; `name` in lower case. Repeated fields are joined by a comma. */
  get(name: string): string | undefined {
    const lines = this.#lines;
    let value: string | undefined;
    for (let at = 0, end = 0; at < lines.length; at = end + lineEnd.length) {
      end = lines.indexOf(lineEnd, at);
      if (!isNamed(lines, at, name)) continue;
      const one = trimmed(lines, at + name.length + 1, end);
      value = value === undefined ? one : `${value}, ${one}`;
    }
    return value;
  }
}

const colon = 58;
const caseBit = 32;

function isNamed(lines: string, at: number, name: string): boolean {
  if (lines.charCodeAt(at + name.length) !== colon) return false;
  for (let index = 0; index < name.length; index++) {
    const code = lines.charCodeAt(at + index);
    const lower = code >= 65 && code <= 90 ? code | caseBit : code;
    if (lower !== name.charCodeAt(index)) return false;
  }
  return true;
}

/** Trims spaces and tabs alone: other blanks are part of a value. */
function trimmed(text: string, start: number, end: number): string {
  let [from, to] = [start, end];
  while (from < to && isBlank(text.charCodeAt(from))) from += 1;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9;
}

/**
 * How the body ends. Throws if the headers name two ways that contradict each other: if the peer meant another end than
 * this parser, a part of one answer would be read as the next answer.
 */
function framingOf(status: number, headers: HeaderFields): Framing {
  const length = headers.get("content-length");
  const coding = headers.get("transfer-encoding");
  if (length !== undefined && coding !== undefined) throw new MalformedResponse("it has a length and is chunked");
  if (length !== undefined && !wholeNumber.test(length)) throw new MalformedResponse("the content length is no number");
  if (coding !== undefined && coding.toLowerCase() !== "chunked") throw new MalformedResponse("the coding is unknown");
  if (status < 200 || status === 204 || status === 304) return { by: "length", bytes: 0 };
  if (coding !== undefined) return { by: "chunks" };
  return length === undefined ? { by: "close" } : { by: "length", bytes: Number(length) };
}

function persists(isVersion11: boolean, headers: HeaderFields): boolean {
  const connection = headers.get("connection");
  if (connection === undefined) return isVersion11;
  const options = connection.toLowerCase().split(/\s*,\s*/);
  return !options.includes("close") && (isVersion11 || options.includes("keep-alive"));
}

/**
 * Whether these bytes, which answer no request, begin a response with status 408: a server may send one before it
 * closes an idle connection (RFC 9110, 15.5.9).
 */
export function saysThatItCloses(bytes: Uint8Array): boolean {
  return /^HTTP\/1\.[01] 408 /.test(Buffer.prototype.toString.call(bytes, "latin1", 0, 13));
}

/** How long the engine promises to keep the connection open, by its header `keep-alive`; null if it does not say. */
export function keptFor_ms(keepAlive: string | undefined): number | null {
  const seconds = keepAlive === undefined ? undefined : /(?:^|[\s,])timeout=(\d{1,6})/.exec(keepAlive)?.[1];
  return seconds === undefined ? null : Number(seconds) * 1000;
}

/** The body of a request: a text, or pieces, which are consumed. */
export type RequestBody = string | Uint8Array[];

export function bytesOf(body: RequestBody): number {
  if (typeof body === "string") return Buffer.byteLength(body);
  return body.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/** The rest of the request line after the method, and the host header. */
export function openingOf({ pathname, search, host }: URL): string {
  return `${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\n`;
}

export function linesOf(headers: Readonly<Record<string, string>>): string {
  let lines = "";
  for (const name in headers) lines += `${name}: ${headers[name]}\r\n`;
  return lines;
}

/** Larger pieces are not copied to be sent with the head. */
const copied_bytes_max = 16 * 1024;

/** The pieces with the head in front. Writing a piece is a system call, so a small first one is joined to the head. */
export function headed(head: string, pieces: Uint8Array[]): Uint8Array[] {
  const bytes = new TextEncoder().encode(head);
  const [first, ...others] = pieces;
  if (!first || first.length > copied_bytes_max) return [bytes, ...pieces];
  const both = new Uint8Array(bytes.length + first.length);
  both.set(bytes);
  both.set(first, bytes.length);
  return [both, ...others];
}
