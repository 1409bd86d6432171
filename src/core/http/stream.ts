/**
 * Sends a stream of events to its caller. The stream is held back until the status of the answer is known, and then
 * written event by event, as fast as the caller reads.
 */
import { type InferenceEvent, isTerminal } from "../inference/event.ts";
import { asFault, Fault } from "../inference/fault.ts";
import { Fold, type Result } from "../inference/result.ts";
import type { StreamEncoder } from "../protocol/codec.ts";
import { encodeSse } from "../sse/decode.ts";
import { type StreamOwner, streamedBody } from "./streamed-body.ts";

type Controller = ReadableStreamDefaultController<Uint8Array>;
type Batch = readonly InferenceEvent[];
type Next = Promise<IteratorResult<Batch, void>>;

/** A stream whose beginning was read: the events so far, and the read that is under way. */
export interface Primed {
  head: Batch[];
  pending: Next | null;
  rest: AsyncGenerator<Batch, void, void>;
}

/**
 * Waits for the first part of the answer, its end or a failure, for at most `hold_ms`. The wait also starts the
 * generator, so that its `finally` will run. A failure that comes first is thrown, so that its true status can be sent.
 */
export async function primed(rest: AsyncGenerator<Batch, void, void>, hold_ms: number): Promise<Primed> {
  const head: Batch[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => {
    if (hold_ms < Number.POSITIVE_INFINITY) timer = setTimeout(() => resolve("late"), hold_ms);
  });
  try {
    for (;;) {
      const pending = rest.next();
      const next = await Promise.race([pending, late]);
      if (next === "late") return { head, pending, rest };
      if (next.done) return { head, pending: null, rest };
      head.push(next.value);
      const decisive = next.value.find(isDecisive);
      if (decisive?.type === "response-failed") {
        await rest.return();
        throw decisive.fault;
      }
      if (decisive) return { head, pending: null, rest };
    }
  } finally {
    clearTimeout(timer);
  }
}

function isDecisive(event: InferenceEvent): boolean {
  return event.type === "part-start" || isTerminal(event);
}

/**
 * Passes the stream on, but holds back its last event: `done` is called with the whole answer, and the event waits
 * until the promise of `done` resolves.
 */
export async function* endsAfter(
  batches: AsyncGenerator<Batch, void, void>,
  done: (answer: Result) => Promise<void>,
): AsyncGenerator<Batch, void, void> {
  const fold = new Fold();
  for await (const batch of batches) {
    for (const event of batch) fold.push(event);
    if (batch.some((event) => event.type === "response-end")) await done(fold.result());
    yield batch;
  }
}

/** A response whose body is still being written. Its request ends when the body closes. */
export interface StreamedAnswer {
  open(owner: StreamOwner): Response;
}

export interface SseOptions {
  encoder: StreamEncoder;
  heartbeat_ms: number;
  /** How long the client may read nothing of what waits for it; absent: as with every streamed answer. */
  unread_ms_max?: number;
  headers: Record<string, string>;
}

export function sseAnswer(stream: Primed, options: SseOptions): StreamedAnswer {
  return eventStream(options.headers, (owner) => new SseSource(stream, options, owner), options.unread_ms_max);
}

/**
 * A response of server-sent events, whose bytes come from a source. `headers` are added to those of all event streams.
 */
export function eventStream(
  headers: Record<string, string>,
  sourceFor: Parameters<typeof streamedBody>[1],
  unread_ms_max?: number,
): StreamedAnswer {
  return {
    open: (owner) => new Response(streamedBody(owner, sourceFor, unread_ms_max), { headers: sseHead(headers) }),
  };
}

export function sseHead(headers: Record<string, string>): Record<string, string> {
  return {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
    ...headers,
  };
}

/** Reads the next events. Those that came before the status was known are returned at once. */
export function nextOf(stream: Primed): Next {
  const { head, pending, rest } = stream;
  if (head.length > 0) return Promise.resolve({ done: false, value: head.splice(0).flat() });
  stream.pending = null;
  return pending ?? rest.next();
}

/** The frames of events that arrived together and are written together. */
export function framesOf(encoder: StreamEncoder, batch: Batch): string {
  let out = "";
  for (const event of batch) {
    const frame = event.type === "part-delta" ? encoder.frame(event) : null;
    if (frame !== null) out += frame;
    else for (const message of encoder.push(event)) out += encodeSse(message);
  }
  return out;
}

const text = new TextEncoder();
const unreadMessage = "Nothing of this answer was read for minutes, so it was ended.";

/**
 * Writes the events of a stream to the body of its response. A class, because closures would be made again for each
 * stream (docs/design/runtime.md, Memory).
 */
class SseSource implements Bun.UnderlyingSource<Uint8Array> {
  readonly #stream: Primed;
  readonly #encoder: StreamEncoder;
  readonly #heartbeat_ms: number;
  readonly #owner: StreamOwner;
  #wrote_ms = performance.now();
  #isBegun = false;
  #beats: ReturnType<typeof setInterval> | undefined;
  #closed = false;

  constructor(stream: Primed, options: SseOptions, owner: StreamOwner) {
    const { encoder, heartbeat_ms } = options;
    this.#stream = stream;
    this.#encoder = encoder;
    this.#heartbeat_ms = heartbeat_ms;
    this.#owner = owner;
  }

  start(controller: Controller): void {
    const heartbeat_ms = this.#heartbeat_ms;
    this.#beats = setInterval(() => {
      // A reader that is behind needs no heartbeat, which would only wait in its queue.
      if ((controller.desiredSize ?? 0) <= 0 || performance.now() - this.#wrote_ms < heartbeat_ms) return;
      this.#wrote_ms = performance.now();
      this.#beat(controller);
    }, heartbeat_ms / 4);
    if (this.#stream.pending) this.#beat(controller);
  }

  async pull(controller: Controller): Promise<void> {
    let out = "";
    try {
      for (;;) {
        const { done, value } = await nextOf(this.#stream);
        if (this.#closed) return;
        if (!done) out += framesOf(this.#encoder, value);
        // The stream's end is awaited before the last frames are written, so that one write also ends the body. The
        // first frames do not wait: they are sent together with the head, which would be slow to send alone.
        const waits = !done && this.#isBegun && value.some(isTerminal);
        if (done || (out !== "" && !waits)) {
          this.#write(controller, out, done === true);
          return;
        }
      }
    } catch (thrown) {
      this.#fail(controller, thrown, out);
    }
  }

  cancel(): void {
    this.#owner.left();
    this.#close();
  }

  giveUp(controller: Controller): void {
    this.#owner.left();
    this.#fail(controller, new Fault("internal_error", unreadMessage));
  }

  #write(controller: Controller, out: string, isLast: boolean): void {
    this.#wrote_ms = performance.now();
    this.#isBegun = true;
    if (out !== "") controller.enqueue(text.encode(out));
    if (!isLast) return;
    this.#close();
    controller.close();
  }

  #beat(controller: Controller): void {
    try {
      const out = this.#encoder.heartbeat();
      if (out !== "") controller.enqueue(text.encode(out));
    } catch (thrown) {
      this.#fail(controller, thrown);
    }
  }

  /**
   * Ends the stream with its protocol's error after a defect of this service, and cuts it off if even that fails.
   * `unwritten`: frames that were made before.
   */
  #fail(controller: Controller, thrown: unknown, unwritten = ""): void {
    if (this.#closed) return;
    const fault = asFault(thrown);
    this.#close(fault);
    try {
      const failure = framesOf(this.#encoder, [{ type: "response-failed", fault }]);
      controller.enqueue(text.encode(unwritten + failure));
      controller.close();
    } catch (cause) {
      controller.error(cause);
    }
  }

  #close(failure?: Fault): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#beats);
    this.#owner.closed(failure);
  }
}
