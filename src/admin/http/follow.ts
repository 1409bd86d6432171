/**
 * Follows the answer of a management operation (a verb): an event stream sends the answer first as it is, and then
 * whenever it has changed. The next answer is read only when the client has taken the previous one, so a slow client
 * misses some answers, and no queue of answers grows in memory. The stream ends with the event `error` when the node
 * drains, the caller may no longer read, or the answer cannot be read.
 */
import { eventStream, type StreamedAnswer } from "../../core/http/stream.ts";
import type { StreamOwner } from "../../core/http/streamed-body.ts";
import { asFault, Fault } from "../../core/inference/fault.ts";
import { comment, encodeSse } from "../../core/sse/decode.ts";

export interface Followed {
  event: string;
  /**
   * Resolves when it is time to read the answer again: at the same time for all streams, so that they share their
   * queries.
   */
  beat(): Promise<void>;
  heartbeat_ms: number;
  /** Reads the answer as JSON text. Throws a Fault if the stream has to end. */
  read(): Promise<string>;
  /** The body of the event `error`. */
  faultBody(fault: Fault): unknown;
}

/** The number of event streams that are open in this process. */
export interface Followers {
  count: number;
}

const followers_max = 64;
/** The time after which a stream ends if its client reads none of the data that waits for it. */
const unread_ms_max = 60_000;

/**
 * Begins the event stream. The first answer is read before the stream begins, so that a refusal is sent with its own
 * HTTP status.
 */
export async function follow(followers: Followers, followed: Followed): Promise<StreamedAnswer> {
  if (followers.count >= followers_max) {
    throw new Fault("overloaded", `${followers_max} others follow this node already. Please try again later.`, {
      retryAfterSeconds: 30,
    });
  }
  followers.count += 1;
  const first = await followed.read().catch((thrown: unknown) => {
    followers.count -= 1;
    throw thrown;
  });
  const sourceFor = (owner: StreamOwner) => {
    const closed = () => {
      followers.count -= 1;
      owner.closed();
    };
    return new FollowSource(followed, first, { left: () => owner.left(), closed });
  };
  return eventStream({}, sourceFor, unread_ms_max);
}

const text = new TextEncoder();

type Controller = ReadableStreamDefaultController<Uint8Array>;

/**
 * The body of a followed answer. Bun calls `cancel` when the client disconnects (docs/design/runtime.md, Bun as a
 * server).
 */
class FollowSource implements Bun.UnderlyingSource<Uint8Array> {
  readonly #followed: Followed;
  readonly #owner: StreamOwner;
  #next: string | null;
  #last = "";
  #wrote_ms = performance.now();
  #isClosed = false;

  constructor(followed: Followed, first: string, owner: StreamOwner) {
    this.#followed = followed;
    this.#next = first;
    this.#owner = owner;
  }

  async pull(controller: Controller): Promise<void> {
    try {
      const frame = await this.#frame();
      if (this.#isClosed) return;
      controller.enqueue(text.encode(frame));
      this.#wrote_ms = performance.now();
    } catch (thrown) {
      this.#end(controller, asFault(thrown));
    }
  }

  cancel(): void {
    if (this.#isClosed) return;
    this.#owner.left();
    this.#close();
  }

  /** Resolves with the next frame of the stream: a changed answer, or a heartbeat. */
  async #frame(): Promise<string> {
    const { event, beat, heartbeat_ms, read } = this.#followed;
    for (;;) {
      const data = this.#next ?? (await read());
      this.#next = null;
      if (data !== this.#last) {
        this.#last = data;
        return encodeSse({ event, data });
      }
      if (this.#isClosed || performance.now() - this.#wrote_ms >= heartbeat_ms) return comment("");
      await beat();
    }
  }

  #end(controller: Controller, fault: Fault): void {
    if (this.#isClosed) return;
    this.#close();
    controller.enqueue(
      text.encode(encodeSse({ event: "error", data: JSON.stringify(this.#followed.faultBody(fault)) })),
    );
    controller.close();
  }

  #close(): void {
    this.#isClosed = true;
    this.#owner.closed();
  }
}
