/**
 * Streams a kept answer to the client that requested it. The engine is read as fast as the log of the answer can be
 * written, whether the client stays or not. Once the log is lost, so that nobody could read the answer from it, the
 * engine is read only as fast as the client takes the answer, and the answer ends when the client leaves.
 */
import type { Call } from "../../core/http/call.ts";
import {
  eventStream,
  framesOf,
  nextOf,
  type Primed,
  type SseOptions,
  type StreamedAnswer,
} from "../../core/http/stream.ts";
import type { StreamOwner } from "../../core/http/streamed-body.ts";
import { isTerminal } from "../../core/inference/event.ts";
import { asFault, type Fault } from "../../core/inference/fault.ts";
import type { Keeping } from "./keeping.ts";

/** The text that may wait for a client before it counts as memory of the request, in code units. */
const waiting_free = 64 * 1024;

export function keptStream(call: Call, stream: Primed, options: SseOptions, keeping: Keeping): StreamedAnswer {
  return eventStream(options.headers, (owner) => {
    const client = new FirstClient(call, keeping, owner);
    keeping.streamsTo(client);
    void run(call, stream, options, keeping, client);
    return client;
  });
}

/** Writes the whole answer to its log, without a client. */
export function logged(call: Call, stream: Primed, options: SseOptions, keeping: Keeping): Promise<void> {
  return run(call, stream, options, keeping, nobody);
}

const nobody = { take() {}, taken: () => Promise.resolve(), end() {} };

/** Writes the whole answer to its log, and to its client as long as the client stays. */
async function run(
  call: Call,
  stream: Primed,
  { encoder, heartbeat_ms }: SseOptions,
  keeping: Keeping,
  client: Pick<FirstClient, "take" | "taken" | "end">,
): Promise<void> {
  let wrote_ms = performance.now();
  const say = (text: string, isFailure = false) => {
    if (text === "") return;
    wrote_ms = performance.now();
    keeping.write(text, isFailure);
    client.take(text);
  };
  const beats = setInterval(() => {
    if (performance.now() - wrote_ms >= heartbeat_ms) say(encoder.heartbeat());
  }, heartbeat_ms / 4);
  try {
    if (stream.pending) say(encoder.heartbeat());
    for (;;) {
      const { done, value: batch } = await nextOf(stream);
      if (done) return;
      say(framesOf(encoder, batch), batch.at(-1)?.type === "response-failed");
      // The log is completed before the run is settled, so that a charged answer can be read again. Nothing, not even a
      // heartbeat, may come after its end.
      if (batch.some(isTerminal)) {
        clearInterval(beats);
        await keeping.end();
      }
      await keeping.room();
      await client.taken();
    }
  } catch (thrown) {
    say(framesOf(encoder, [{ type: "response-failed", fault: failed(call, thrown) }]), true);
  } finally {
    clearInterval(beats);
    await keeping.end();
    client.end();
  }
}

/** Notes the failure of an answer whose status was sent, and returns its fault. A cancelled request has not failed. */
export function failed(call: Call, thrown: unknown): Fault {
  const fault = asFault(thrown);
  if (!call.left) call.failed(fault);
  return fault;
}

const utf8 = new TextEncoder();

/** A class, because closures would be made again for each stream (docs/design/runtime.md, Memory). */
class FirstClient implements Bun.UnderlyingSource<Uint8Array> {
  #waiting = "";
  #isOver = false;
  hasLeft = false;
  #isClosed = false;
  #wake: (() => void) | null = null;
  #drained: (() => void) | null = null;

  constructor(
    readonly call: Call,
    readonly keeping: Keeping,
    readonly owner: StreamOwner,
  ) {}

  take(text: string): void {
    if (this.hasLeft) return;
    this.#waiting += text;
    // A client that is too slow for the available memory is cut off, and can request the answer again.
    if (this.keeping.goesOn && this.#waiting.length > waiting_free && !this.call.keepsText(text.length * 2)) {
      this.hasLeft = true;
      this.#waiting = "";
    }
    this.#wake?.();
  }

  /** Resolves when more of the answer may be written. */
  async taken(): Promise<void> {
    if (this.keeping.goesOn || this.#isOver) return;
    if (this.hasLeft) return this.call.leave();
    if (this.#waiting === "") return;
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
  }

  /** Ends the stream to the client, after the text that still waits. */
  end(): void {
    this.#isOver = true;
    if (this.hasLeft) this.#close();
    this.#wake?.();
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    while (this.#waiting === "" && !this.#isOver && !this.hasLeft) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#waiting !== "") {
      controller.enqueue(utf8.encode(this.#waiting));
      this.#waiting = "";
      this.#drained?.();
      return;
    }
    if (this.hasLeft) return controller.error(new Error("the client is too slow"));
    this.#close();
    controller.close();
  }

  cancel(): void {
    this.hasLeft = true;
    this.#waiting = "";
    this.#drained?.();
    if (this.#isOver) this.#close();
    else if (!this.keeping.goesOn) this.call.leave();
  }

  /** Ends the request, before the last byte is written. */
  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.owner.closed();
  }
}
