/** Base of the writers of Messages and Responses streams: the frames that wait to be sent, and the stream's end. */
import { asFault, type Fault } from "../inference/fault.ts";
import { encodeSse } from "../sse/encode.ts";
import type { SseMessage } from "../sse/message.ts";
import type { StreamEncoder, StreamEnding } from "./codec.ts";

export abstract class FrameWriter {
  #frames: SseMessage[] = [];

  /** Writes what keeps the stream alive while the model is silent. */
  abstract heartbeat(): void;

  /** The frames that were written since the last call. */
  take(): SseMessage[] {
    const frames = this.#frames;
    this.#frames = [];
    return frames;
  }

  protected put(frame: SseMessage): void {
    this.#frames.push(frame);
  }
}

/** The methods `end` and `heartbeat` of an encoder. `fail` writes the fault of events that stopped without an end. */
export function endOf(writer: FrameWriter, fail: (fault: Fault) => void): Pick<StreamEncoder, "end" | "heartbeat"> {
  return {
    end() {
      fail(asFault(new Error("the events ended without their end")));
      return writer.take();
    },
    heartbeat() {
      writer.heartbeat();
      return writer.take().map(encodeSse).join("");
    },
  };
}

/** Ends a stream in a protocol whose failure does not depend on what was written before. */
export function endsBy(failure: (fault: Fault, requestId: string) => SseMessage[]): StreamEnding {
  return { saw() {}, end: (fault, requestId) => failure(fault, requestId).map(encodeSse).join("") };
}
