/**
 * Sends an answer that is passed on from an engine (passing.ts): whole if the answer is small, else piece by piece as
 * it arrives.
 */
import type { HttpAnswer } from "../../core/http/frame.ts";
import { jsonBytes, jsonStream } from "../../core/http/json.ts";
import { primed, type SseOptions, type StreamedAnswer, sseAnswer } from "../../core/http/stream.ts";
import { type StreamOwner, streamedBody } from "../../core/http/streamed-body.ts";
import type { InferenceEvent } from "../../core/inference/event.ts";
import { asFault, type Fault } from "../../core/inference/fault.ts";
import { noUsage } from "../../core/inference/usage.ts";
import type { Run } from "../../core/usage/run.ts";
import { Bytes } from "./bytes.ts";
import type { Around } from "./passing.ts";
import { held_bytes_max } from "./reader.ts";

type Batch = readonly InferenceEvent[];

/**
 * Answers with server-sent events. The first part is awaited, so that the status of an early failure can still be sent.
 */
export async function streamedAnswer(
  run: Run,
  options: Pick<SseOptions, "encoder" | "headers">,
  { first_event_hold_ms, heartbeat_ms }: { first_event_hold_ms: number; heartbeat_ms: number },
  begun: () => void,
): Promise<HttpAnswer> {
  const stream = await primed(run.events, first_event_hold_ms);
  begun();
  return sseAnswer(stream, { ...options, heartbeat_ms });
}

/**
 * Answers without streaming. `begun` is called when a large answer begins to be sent, after which the request is not
 * needed.
 */
export async function wholeAnswer(
  run: Run,
  around: Around,
  headers: Record<string, string>,
  begun: () => void,
): Promise<HttpAnswer> {
  const writer = new Writer(around);
  while (writer.bytes <= held_bytes_max || writer.isOver) {
    const { done, value } = await run.events.next();
    if (done) {
      if (writer.failure) throw writer.failure;
      return jsonBytes(200, writer.take(), headers);
    }
    writer.write(value);
  }
  begun();
  return pouring(run, writer, headers);
}

/** Writes the answer: the list that is passed on, with the members around it. */
class Writer {
  readonly #around: Around;
  readonly #bytes = new Bytes();
  #usage = noUsage;
  failure: Fault | null = null;
  isOver = false;

  constructor(around: Around) {
    this.#around = around;
    this.#bytes.addText(around.head);
  }

  get bytes(): number {
    return this.#bytes.length;
  }

  write(batch: Batch): void {
    for (const event of batch) {
      if (event.type === "passed") this.#bytes.add(event.bytes);
      else if (event.type === "usage") this.#usage = event.usage;
      else if (event.type === "response-failed") this.failure = event.fault;
      else if (event.type === "response-end") this.#bytes.addText(this.#around.tail(this.#usage));
      else continue;
      this.isOver ||= event.type === "response-failed" || event.type === "response-end";
    }
  }

  take(): Uint8Array<ArrayBuffer> {
    return this.#bytes.take();
  }
}

function pouring(run: Run, writer: Writer, headers: Record<string, string>): StreamedAnswer {
  return {
    open: (owner) =>
      jsonStream(
        streamedBody(owner, (watched) => new Pouring(run, writer, watched)),
        headers,
      ),
  };
}

/**
 * A large answer, sent as fast as its client reads. If it turns out to be invalid, the client's connection is cut off.
 */
class Pouring implements Bun.UnderlyingSource<Uint8Array> {
  readonly #events: Run["events"];
  readonly #writer: Writer;
  readonly #owner: StreamOwner;
  #isClosed = false;

  constructor({ events }: Run, writer: Writer, owner: StreamOwner) {
    this.#events = events;
    this.#writer = writer;
    this.#owner = owner;
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    try {
      while (this.#writer.bytes === 0) {
        const { done, value } = await this.#events.next();
        if (this.#isClosed) return;
        if (done) return this.#end(controller);
        this.#writer.write(value);
      }
      // The events' end is awaited before the last bytes are sent, so that the request's record exists by then.
      if (!this.#writer.isOver) controller.enqueue(this.#writer.take());
      else {
        await this.#events.next();
        this.#end(controller);
      }
    } catch (thrown) {
      this.#fail(controller, asFault(thrown));
    }
  }

  cancel(): void {
    this.#owner.left();
    this.#close();
  }

  #end(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const { failure } = this.#writer;
    if (failure) this.#fail(controller, failure);
    else {
      this.#close();
      if (this.#writer.bytes > 0) controller.enqueue(this.#writer.take());
      controller.close();
    }
  }

  #fail(controller: ReadableStreamDefaultController<Uint8Array>, fault: Fault): void {
    if (this.#isClosed) return;
    this.#close(fault);
    controller.error(fault);
  }

  #close(fault?: Fault): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#owner.closed(fault);
  }
}
