/** The caller's end of a stream: held back until it is worth a 200, then written event by event, as fast as it is read. */
import type { InferenceEvent } from "../inference/event.ts";
import { asFault } from "../inference/fault.ts";
import { folding, type Result } from "../inference/result.ts";
import type { StreamEncoder } from "../protocol/codec.ts";
import { encodeSse } from "../sse/encode.ts";

type Controller = ReadableStreamDefaultController<Uint8Array>;
type Batch = readonly InferenceEvent[];
type Next = Promise<IteratorResult<Batch, void>>;

/** A stream that has been looked into: what came so far, and what is on its way. */
export interface Primed {
  head: Batch[];
  pending: Next | null;
  rest: AsyncGenerator<Batch, void, void>;
}

/**
 * Waits for the first part of the answer, an end or a failure, for at most `hold_ms`, and arms the generator's `finally`.
 * A failure that comes first is thrown, so that it has its true status.
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
  return event.type === "part-start" || event.type === "response-end" || event.type === "response-failed";
}

/** The same stream, whose end is held back until `done` has had the whole of the answer. */
export async function* endsAfter(
  batches: AsyncGenerator<Batch, void, void>,
  done: (answer: Result) => Promise<void>,
): AsyncGenerator<Batch, void, void> {
  const fold = folding();
  for await (const batch of batches) {
    for (const event of batch) fold.push(event);
    if (batch.some((event) => event.type === "response-end")) await done(fold.result());
    yield batch;
  }
}

export interface SseOptions {
  encoder: StreamEncoder;
  heartbeat_ms: number;
  headers: Record<string, string>;
  /** The client went away. Called before `closed`. */
  left(): void;
  /** The last byte was written, or will never be: whoever owns the events ends them. Called once. */
  closed(): void;
}

export function sseResponse(stream: Primed, options: SseOptions): Response {
  const { encoder, heartbeat_ms } = options;
  const text = new TextEncoder();
  let wrote_ms = performance.now();
  let beats: ReturnType<typeof setInterval> | undefined;
  let closed = false;

  /** What came together is written together. */
  const frames = (batch: Batch) => {
    let out = "";
    for (const event of batch) {
      const frame = event.type === "part-delta" ? encoder.frame(event) : null;
      if (frame !== null) out += frame;
      else for (const message of encoder.push(event)) out += encodeSse(message);
    }
    return out;
  };
  const beat = (controller: Controller) => {
    try {
      const out = encoder.heartbeat();
      if (out !== "") controller.enqueue(text.encode(out));
    } catch (thrown) {
      fail(controller, thrown);
    }
  };
  const close = () => {
    if (closed) return;
    closed = true;
    clearInterval(beats);
    options.closed();
  };

  /** A defect of ours: the stream still ends in its protocol's error, never in silence, and is cut where even that fails. */
  function fail(controller: Controller, thrown: unknown): void {
    if (closed) return;
    close();
    try {
      controller.enqueue(text.encode(frames([{ type: "response-failed", fault: asFault(thrown) }])));
      controller.close();
    } catch (cause) {
      controller.error(cause);
    }
  }

  async function next(): Promise<IteratorResult<Batch, void>> {
    if (stream.head.length > 0) return { done: false, value: stream.head.splice(0).flat() };
    const pending = stream.pending ?? stream.rest.next();
    stream.pending = null;
    return pending;
  }

  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      // A reader that is behind needs no heartbeat, and would have it queued for nothing.
      beats = setInterval(() => {
        if (performance.now() - wrote_ms < heartbeat_ms || (controller.desiredSize ?? 0) <= 0) return;
        wrote_ms = performance.now();
        beat(controller);
      }, heartbeat_ms / 4);
      if (stream.pending) beat(controller);
    },
    async pull(controller) {
      try {
        for (;;) {
          const { done, value } = await next();
          if (closed) return;
          if (done) {
            close();
            controller.close();
            return;
          }
          const out = frames(value);
          if (out === "") continue;
          wrote_ms = performance.now();
          controller.enqueue(text.encode(out));
          return;
        }
      } catch (thrown) {
        fail(controller, thrown);
      }
    },
    cancel() {
      options.left();
      close();
    },
  });
  return new Response(body, {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
      ...options.headers,
    },
  });
}
