/** The head of an HTTP/1.1 response: status line and header fields, as strict as RFC 9112 allows. Pure. */

export interface ResponseHead {
  status: number;
  /** By lower-case name; what is repeated is joined by a comma. */
  headers: ReadonlyMap<string, string>;
  framing: Framing;
  /** Whether another request may follow on the connection. */
  keepsOpen: boolean;
}

/** How the end of a body is known. */
export type Framing = { by: "length"; bytes: number } | { by: "chunks" } | { by: "close" };

/** Bytes that are no HTTP/1.1 response, or one larger than is read. */
export class MalformedResponse extends Error {
  override readonly name = "MalformedResponse";
}

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const field = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[\t ]*([\t\x20-\x7e\x80-\xff]*?)[\t ]*$/;

/** Lines without their ends, the status line first. Throws MalformedResponse. */
export function headOf(lines: readonly string[]): ResponseHead {
  const status = statusLine.exec(lines[0] ?? "");
  if (!status) throw new MalformedResponse("the status line is not HTTP/1.1's");
  const code = Number(status[2]);
  const headers = fieldsOf(lines.slice(1));
  const framing = framingOf(code, headers);
  return { status: code, headers, framing, keepsOpen: framing.by !== "close" && persists(status[1] === "1", headers) };
}

/** A folded line, a space before the colon and a control character are what smuggled requests are made of. */
export function fieldsOf(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const found = field.exec(line);
    if (!found) throw new MalformedResponse("a header field is malformed");
    const name = found[1]!.toLowerCase();
    const before = headers.get(name);
    headers.set(name, before === undefined ? found[2]! : `${before}, ${found[2]}`);
  }
  return headers;
}

/** Two ways to know the end are none: whoever is wrong about it would read one answer as the next one's. */
function framingOf(status: number, headers: ReadonlyMap<string, string>): Framing {
  const length = headers.get("content-length");
  const coding = headers.get("transfer-encoding");
  if (length !== undefined && coding !== undefined) throw new MalformedResponse("it has a length and is chunked");
  if (length !== undefined && !/^\d{1,15}$/.test(length))
    throw new MalformedResponse("the content length is no number");
  if (coding !== undefined && coding.toLowerCase() !== "chunked") throw new MalformedResponse("the coding is unknown");
  if (status < 200 || status === 204 || status === 304) return { by: "length", bytes: 0 };
  if (coding !== undefined) return { by: "chunks" };
  return length === undefined ? { by: "close" } : { by: "length", bytes: Number(length) };
}

function persists(isVersion11: boolean, headers: ReadonlyMap<string, string>): boolean {
  const options = (headers.get("connection") ?? "").toLowerCase().split(/\s*,\s*/);
  return !options.includes("close") && (isVersion11 || options.includes("keep-alive"));
}
