/**
 * The body of every answer that is streamed. A client that reads nothing of what waits for it counts as gone after five
 * minutes: otherwise its request would hold memory and request slots, at the engine and elsewhere, for as long as its
 * connection lives. Rule: docs/design/service.md, Slow readers.
 */
import type { Fault } from "../inference/fault.ts";

type Controller = ReadableStreamDefaultController<Uint8Array>;

export interface StreamOwner {
  /** Called when the client has left, before `closed`. */
  left(): void;
  /**
   * Called once, when the last byte was written or will never be written. The owner must then end the events.
   * `failure`: the fault with which the source itself ended the stream.
   */
  closed(failure?: Fault): void;
}

interface AnswerSource extends Bun.UnderlyingSource<Uint8Array> {
  pull(controller: Controller): Promise<void>;
  cancel(): void;
  /**
   * Called in place of `cancel` when the client has read nothing for long. Ends the stream with an error, in case the
   * client reads on. Absent: the connection is broken.
   */
  giveUp?(controller: Controller): void;
}

const unread_ms_default = 300_000;
/**
 * How often within that time it is checked whether the client has read. The checks are counted instead of measuring
 * time: a standstill of this process is not the client's fault.
 */
const looks_max = 4;

export function streamedBody(
  owner: StreamOwner,
  sourceFor: (owner: StreamOwner) => AnswerSource,
  unread_ms_max = unread_ms_default,
): ReadableStream<Uint8Array> {
  return new ReadableStream(new Watched(owner, sourceFor, unread_ms_max));
}

/** A class, because closures would be made again for each stream (docs/design/runtime.md, Memory). */
class Watched implements Bun.UnderlyingSource<Uint8Array>, StreamOwner {
  readonly #owner: StreamOwner;
  readonly #source: AnswerSource;
  readonly #look_ms: number;
  /** The number of checks, since the client last read, at which unread bytes waited for it. */
  #unread = 0;
  #looks: ReturnType<typeof setInterval> | undefined;

  constructor(owner: StreamOwner, sourceFor: (owner: StreamOwner) => AnswerSource, unread_ms_max: number) {
    this.#owner = owner;
    this.#look_ms = unread_ms_max / looks_max;
    this.#source = sourceFor(this);
  }

  start(controller: Controller): void {
    this.#looks = setInterval(() => this.#look(controller), this.#look_ms);
    this.#source.start?.(controller);
  }

  pull(controller: Controller): Promise<void> {
    this.#unread = 0;
    return this.#source.pull(controller);
  }

  cancel(): void {
    clearInterval(this.#looks);
    this.#source.cancel();
  }

  left(): void {
    this.#owner.left();
  }

  closed(failure?: Fault): void {
    clearInterval(this.#looks);
    this.#owner.closed(failure);
  }

  #look(controller: Controller): void {
    this.#unread = (controller.desiredSize ?? 0) > 0 ? 0 : this.#unread + 1;
    if (this.#unread <= looks_max) return;
    clearInterval(this.#looks);
    if (this.#source.giveUp) this.#source.giveUp(controller);
    else {
      this.#source.cancel();
      controller.error(new Error("the client reads nothing"));
    }
  }
}
