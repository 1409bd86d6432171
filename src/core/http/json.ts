/** A JSON answer, which no cache may store. */
export function json(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return jsonText(status, JSON.stringify(body), headers);
}

/** As `json`, for a body that is already JSON text. */
export function jsonText(status: number, text: string, headers: Record<string, string> = {}): Response {
  return withHeaders(new Response(gathered(text), { status, headers: common }), headers);
}

/** As `json`, for a body of bytes. */
export function jsonBytes(
  status: number,
  bytes: Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Response {
  return withHeaders(new Response(gatheredBytes(bytes), { status, headers: common }), headers);
}

/** As `json`, for a body that is not complete yet. */
export function jsonStream(body: ReadableStream<Uint8Array>, headers: Record<string, string> = {}): Response {
  return withHeaders(new Response(body, { headers: common }), headers);
}

function withHeaders(response: Response, headers: Record<string, string>): Response {
  // Headers are set one by one: the runtime would copy an object of them first.
  for (const name in headers) response.headers.set(name, headers[name]!);
  return response;
}

const common = new Headers({ "content-type": "application/json", "cache-control": "no-store" });

/**
 * The body in the form in which the runtime writes it together with the head. The runtime does so if both have at most
 * 16 KiB together, and otherwise gives the system each header by itself, in some 80 calls; the head of a stream is
 * always written at once.
 */
function gathered(text: string): string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> {
  // No UTF-16 unit takes more than three bytes.
  if (text.length * 3 <= gathered_bytes_max) return text;
  const bytes = new TextEncoder().encode(text);
  return bytes.length <= gathered_bytes_max ? text : gatheredBytes(bytes);
}

function gatheredBytes(bytes: Uint8Array<ArrayBuffer>): string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> {
  if (bytes.length <= gathered_bytes_max) return bytes;
  return new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
}

/** The largest body that is written together with its head. It leaves 4 KiB of the 16 KiB for the head. */
const gathered_bytes_max = 12 * 1024;
