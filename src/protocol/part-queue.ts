/**
 * One part at a time. In the centre, parts may be open side by side, because engines interleave the fragments of tool
 * calls. On the wire they may not, because clients act on the one that is open. The part that began first passes as it
 * comes; the others wait, and each follows when those before it have ended.
 */
import type { InferenceEvent, PartDelta, PartHead } from "../inference/event.ts";
import { ToolInput } from "./tool-input.ts";

interface Part {
  index: number;
  held: InferenceEvent[];
  ended: boolean;
  /** Reads the arguments of a call to see where they end; null where only the engine can say. */
  input: ToolInput | null;
}

/** Takes events in any grammatical order, and answers those that may be written by now, part by part. */
export class PartQueue {
  /** In order of their beginning; the first is the one that passes. */
  #parts: Part[] = [];

  push(event: InferenceEvent): InferenceEvent[] {
    switch (event.type) {
      case "part-start":
        this.#parts.push({ index: event.index, held: [event], ended: false, input: inputOf(event.part) });
        return this.#advance();
      case "part-delta": {
        const part = this.#openAt(event.index);
        // A call that gave way to the next may still get blanks, or braces too many.
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

  /** Takes a delta that passes alone. Where it has to wait, or may let others pass, nothing is taken: it is to be pushed. */
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
      // Some engines end their calls with the answer: the next one need not wait for that.
      if (part.input?.complete && this.#parts.length > 1) end(part);
      passed.push(...part.held.splice(0));
      if (!part.ended) break;
      this.#parts.shift();
    }
    return passed;
  }
}

/** A custom tool that the engine knows takes plain text, whose braces say nothing. */
function inputOf(head: PartHead): ToolInput | null {
  return head.kind === "tool-call" && !head.custom ? new ToolInput() : null;
}

/** What waits becomes one piece; log probabilities stay with the piece that they came with. */
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
