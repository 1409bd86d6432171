/**
 * Puts the parts of an answer one after the other. In the events of an answer, several parts may be open at a time,
 * because engines interleave the fragments of tool calls. Clients can act only on one open part. The part that began
 * first passes as it comes; the others wait, and each follows when those before it have ended. A part's frames differ
 * only in their delta, so each frame is made from the unchanging text around the delta (docs/design/protocols.md,
 * Deltas as frames).
 */
import type { InferenceEvent, PartDelta, PartHead } from "../inference/event.ts";
import { asFault, type Fault } from "../inference/fault.ts";
import { encodeSse, type SseMessage } from "../sse/decode.ts";
import type { StreamEncoder } from "./codec.ts";
import { ToolInput } from "./tool-input.ts";

/** A frame without its delta: the whole frame is `before + JSON.stringify(delta) + after`. */
export interface AroundDelta {
  before: string;
  after: string;
}

/**
 * The frame around the delta of this message. The message's delta must be empty, and be the last empty string in it.
 */
export function aroundDelta(message: SseMessage): AroundDelta {
  const frame = encodeSse(message);
  const at = frame.lastIndexOf('""');
  return { before: frame.slice(0, at), after: frame.slice(at + 2) };
}

interface Part {
  index: number;
  held: InferenceEvent[];
  ended: boolean;
  /** Detects the end of a call's arguments; null if only the engine marks the end. */
  input: ToolInput | null;
}

/**
 * Takes events in any order that the grammar of inference/event.ts allows, and returns those that can be written now.
 */
export class PartQueue {
  /** The open parts in order of their beginning. The events of the first part are returned as they come. */
  #parts: Part[] = [];

  push(event: InferenceEvent): InferenceEvent[] {
    switch (event.type) {
      case "part-start":
        this.#parts.push({ index: event.index, held: [event], ended: false, input: inputOf(event.part) });
        return this.#advance();
      case "part-delta": {
        const part = this.#openAt(event.index);
        // A call that was ended because another part began may still get blanks or surplus braces, which are dropped.
        if (!part) return [];
        part.input?.push(event.delta);
        if (part === this.#parts[0] && !part.input?.complete) return [event];
        hold(part, event);
        return this.#advance();
      }
      case "part-end": {
        const part = this.#openAt(event.index);
        if (!part) return [];
        end(part, event);
        return this.#advance();
      }
      case "response-end":
        for (const part of this.#parts) end(part);
        return [...this.#advance(), event];
      default:
        return [event];
    }
  }

  /**
   * Takes a delta that can be written at once and alone. Returns false, and takes nothing, if the delta has to wait or
   * may release other parts; then call `push` with it.
   */
  takes({ index, delta }: PartDelta): boolean {
    const first = this.#parts[0];
    if (first?.index !== index || first.input?.mayEnd(delta)) return false;
    first.input?.push(delta);
    return true;
  }

  #openAt(index: number): Part | undefined {
    return this.#parts.find((part) => part.index === index && !part.ended);
  }

  #advance(): InferenceEvent[] {
    const passed: InferenceEvent[] = [];
    for (let part = this.#parts[0]; part; part = this.#parts[0]) {
      // Some engines end their calls only with the answer. A complete call ends at once, so that the next part need not
      // wait.
      if (part.input?.complete && this.#parts.length > 1) end(part);
      passed.push(...part.held.splice(0));
      if (!part.ended) break;
      this.#parts.shift();
    }
    return passed;
  }
}

/**
 * The detector of the end of a call's arguments. Null for a custom tool: its arguments are plain text, which no brace
 * ends.
 */
function inputOf(head: PartHead): ToolInput | null {
  return head.kind === "tool-call" && !head.custom ? new ToolInput() : null;
}

/**
 * Keeps a delta that has to wait. It is joined to the delta before it, unless one of the two has log probabilities,
 * which must stay with their own text.
 */
function hold({ held }: Part, event: PartDelta): void {
  const last = held.at(-1);
  if (last?.type === "part-delta" && !event.logprobs && !last.logprobs)
    held.splice(-1, 1, { ...last, delta: last.delta + event.delta });
  else held.push(event);
}

function end(part: Part, event: InferenceEvent = { type: "part-end", index: part.index }): void {
  if (part.ended) return;
  part.ended = true;
  part.held.push(event);
}

/** Base of the writers of Messages and Responses streams: the frames that wait to be sent, and the stream's end. */
export abstract class FrameWriter {
  #frames: SseMessage[] = [];

  /** Writes an event that keeps the stream alive while the model is silent. */
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

/**
 * Makes the methods `end` and `heartbeat` of an encoder. `fail` writes the fault if the events stopped without an end.
 */
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
