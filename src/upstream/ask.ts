/**
 * UPSTREAM: talking to one engine over HTTP: encode → fetch → sse → decode, with a deadline on every wait.
 *
 * Whatever happens on the wire, the stream that leaves here is grammatical and its last event is `response-end` or
 * `response-failed`; nothing is thrown. Leaving the generator early aborts the request, which closes the socket.
 */
import type { InferenceEvent } from "../inference/event.ts";
import { Fault } from "../inference/fault.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { ResponseIdentity, Transducer, UpstreamAsk, UpstreamCodec } from "../protocol/codec.ts";
import { SseDecoder } from "../sse/decode.ts";
import type { SseMessage } from "../sse/message.ts";
import { within } from "../time/deadline.ts";
import { readAtMost } from "./body.ts";
import type { Upstream } from "./target.ts";
import { watchdog } from "./watchdog.ts";

/** Whether an engine streams is read off its answer, whatever it was asked. */
export interface Question extends UpstreamAsk {
  upstream: Upstream;
  codec: UpstreamCodec;
  request: InferenceRequest;
  identity: ResponseIdentity;
  /** The caller's patience: its abort ends the request, and its reason (a Fault) the stream. */
  signal: AbortSignal;
}

/** An engine's whole reply, and its refusals: more is not read. */
const reply_bytes_max = 64 * 1024 * 1024;
const refusal_bytes_max = 64 * 1024;

export async function* ask(question: Question): AsyncGenerator<InferenceEvent[], void, void> {
  const { upstream, codec, identity, signal } = question;
  const abort = new AbortController();
  const onAbort = () => abort.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  const answer: Reading = { whole: false, rest: null };
  const dog = watchdog((waitedFor) => abort.abort(tooSlow(waitedFor)));
  dog.limit(upstream.timeouts.total_ms, "the whole answer");
  try {
    dog.expect(upstream.timeouts.connect_ms, "the status line");
    const response = await post(question, abort.signal);
    if (response.status !== 200) {
      yield [{ type: "response-failed", fault: await refusalOf(response, codec) }];
      return;
    }
    dog.expect(upstream.timeouts.first_part_ms, "the first part");
    const contentType = response.headers.get("content-type") ?? "";
    if (contentType.includes("text/event-stream")) {
      const heard = () => dog.expect(upstream.timeouts.idle_ms, "the next part");
      yield* streamed(response, codec.stream.decoder(identity, question.request.outputTokens_max), heard, answer);
    } else if (contentType.includes("json")) {
      const reply = await readAtMost(response, reply_bytes_max);
      answer.whole = true;
      yield codec.response.decode(JSON.parse(reply), identity, question.request.outputTokens_max);
    } else {
      throw new Error(`the upstream answered with content type '${contentType.slice(0, 100)}'`);
    }
  } catch (cause) {
    yield [{ type: "response-failed", fault: faultOf(abort.signal, cause) }];
  } finally {
    dog.stop();
    signal.removeEventListener("abort", onAbort);
    if (answer.rest) void readOut(answer.rest, abort);
    else if (!answer.whole) abort.abort();
  }
}

/** How far an answer has been read: a connection whose answer was read to its end serves the next request. */
interface Reading {
  whole: boolean;
  /** Its events have ended, and the engine has not closed it yet. */
  rest: Rest | null;
}

interface Rest {
  read(): Promise<{ done: boolean }>;
}

/** What follows the end is a few bytes at most; an engine that says more, or nothing, is let go. */
async function readOut(rest: Rest, abort: AbortController): Promise<void> {
  const toItsEnd = async () => {
    for (let reads = 0; reads <= rest_reads_max; reads++) if ((await rest.read()).done) return;
    throw new Error("the engine sent more after the end of its answer");
  };
  await within(toItsEnd(), rest_ms_max, "the engine").catch(() => abort.abort());
}
const rest_ms_max = 1000;
const rest_reads_max = 16;

async function* streamed(
  response: Response,
  decoder: Transducer<SseMessage, InferenceEvent>,
  heard: () => void,
  answer: Reading,
) {
  const frames = new SseDecoder();
  const reader = (response.body ?? new Blob([]).stream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const messages = done ? [] : frames.push(value);
      // What one read brought leaves in one batch: events that travel together cost a tenth.
      const batch = messages.flatMap((message) => decoder.push(message));
      if (done) batch.push(...decoder.end());
      if (done) answer.whole = true;
      else if (batch.some((event) => event.type === "response-end")) answer.rest = reader;
      if (batch.length > 0) {
        heard();
        yield batch;
      }
      if (done || batch.some(isTerminal)) return;
    }
  } finally {
    if (!answer.rest && !answer.whole) reader.cancel().catch(() => {});
  }
}

function isTerminal(event: InferenceEvent): boolean {
  return event.type === "response-end" || event.type === "response-failed";
}

/**
 * A pooled connection may have been closed by the engine just now: one more try, where no answer had begun, and on a
 * connection of its own, because the next of the pool may be closed as well (llama.cpp does it after every stream).
 */
async function post(question: Question, signal: AbortSignal): Promise<Response> {
  const { upstream, codec, request, model, stream, outputTokens_max, instructionsInside } = question;
  const asked = codec.request.encode(request, { model, stream, outputTokens_max, instructionsInside });
  const body = JSON.stringify(asked);
  const headers: Record<string, string> = { "content-type": "application/json", ...credentials(upstream) };
  const send = (keepalive: boolean) =>
    fetch(upstream.url + codec.path, { method: "POST", headers, body, signal, keepalive, ...transport });
  try {
    return await send(true);
  } catch (cause) {
    if (signal.aborted || !isStaleConnection(cause)) throw cause;
    return await send(false);
  }
}

/** No proxy from the environment, no timeout of the runtime's: docs/design/runtime.md, Bun fetch. */
const transport = { redirect: "manual", proxy: false, timeout: false } as unknown as RequestInit;

function credentials(upstream: Upstream): Record<string, string> {
  if (upstream.apiKey === null) return {};
  return upstream.protocol === "anthropic-messages"
    ? { "x-api-key": upstream.apiKey, "anthropic-version": "2023-06-01" }
    : { authorization: `Bearer ${upstream.apiKey}` };
}

function isStaleConnection(cause: unknown): boolean {
  const code = (cause as { code?: unknown } | null)?.code;
  return code === "ECONNRESET" || code === "EPIPE" || code === "ConnectionClosed";
}

async function refusalOf(response: Response, codec: UpstreamCodec): Promise<Fault> {
  const text = await readAtMost(response, refusal_bytes_max).catch(() => "");
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // An engine's proxy answers in HTML; the status says enough.
  }
  const fault = codec.fault.decode(response.status, body);
  const wait = retryAfterOf(response);
  return wait === null ? fault : new Fault(fault.code, fault.message, { ...fault.details, retryAfterSeconds: wait });
}

/** Relayed, at most a minute: agents wait on what is named, and an engine's "one day" is not ours to promise. */
function retryAfterOf(response: Response): number | null {
  const seconds = Number(response.headers.get("retry-after"));
  if (!response.headers.has("retry-after") || !Number.isFinite(seconds) || seconds < 0) return null;
  return response.status === 429 || response.status >= 500 ? Math.min(60, Math.max(1, Math.ceil(seconds))) : null;
}

function tooSlow(waitedFor: string): Fault {
  return new Fault("upstream_timeout", "The model's engine took too long to answer. Please try again.", {
    retryAfterSeconds: 1,
    cause: new Error(`the upstream took too long: ${waitedFor}`),
  });
}

function faultOf(signal: AbortSignal, cause: unknown): Fault {
  if (signal.aborted && signal.reason instanceof Fault) return signal.reason;
  // What this engine's protocol has no words for is the caller's to change.
  if (cause instanceof Fault) return cause;
  return new Fault(
    "upstream_unavailable",
    "The model's engine could not be reached, or stopped before its answer was complete. Please try again.",
    {
      retryAfterSeconds: 1,
      cause,
    },
  );
}
