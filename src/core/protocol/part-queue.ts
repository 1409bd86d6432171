/**
 * Puts the parts of an answer one after the other. In the centre, parts may be open side by side, because engines interleave
 * the fragments of tool calls. On the wire they may not, because clients act on the open one. The part that began first
 * passes as it comes. The others wait, and each follows when those before it have ended.
 */
import type { InferenceEvent, PartDelta, PartHead } from "../inference/event.ts";
import { ToolInput } from "./tool-input.ts";

interface Part {
  index: number;
  held: InferenceEvent[];
  ended: boolean;
  /** Detects the end of a call's arguments; null if only the engine can tell it. */
  input: ToolInput | null;
}

/** Takes events in any grammatical order, and returns those that may be written now. */
export class PartQueue {
  /** In order of their beginning. The first one passes. */
  #parts: Part[] = [];

  push(event: InferenceEvent): InferenceEvent[] {
    switch (event.type) {
      case "part-start":
        this.#parts.push({ index: event.index, held: [event], ended: false, input: inputOf(event.part) });
        return this.#advance();
      case "part-delta": {
        const part = this.#openAt(event.index);
        // A call that has ended because the next one began may still get blanks, or braces too many.
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

  /** Takes a delta that passes alone. Returns false, and takes nothing, if it has to wait or may let others pass: push it. */
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
      // Some engines end their calls only with the answer. The next part need not wait for that.
      if (part.input?.complete && this.#parts.length > 1) end(part);
      passed.push(...part.held.splice(0));
      if (!part.ended) break;
      this.#parts.shift();
    }
    return passed;
  }
}

/** The arguments of a custom tool are plain text, whose end no brace marks. */
function inputOf(head: PartHead): ToolInput | null {
  return head.kind === "tool-call" && !head.custom ? new ToolInput() : null;
}

/** Joins a waiting delta to the one before it, unless it has log probabilities, which stay with their piece. */
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
