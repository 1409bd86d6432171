/**
 * One tool call at a time: engines interleave fragments, the protocol allows it, and the official SDK's helper for strict
 * tools throws on it. The call that began first is written as it comes; the others are held until its arguments are whole.
 */
import type { SseMessage } from "../../sse/message.ts";
import { ToolInput } from "../tool-input.ts";

interface Waiting {
  part: number;
  input: ToolInput;
  held: SseMessage[];
  ended: boolean;
}

export class CallQueue {
  /** In order of their beginning; the first is the one that is written. */
  #calls: Waiting[] = [];

  begin(part: number, message: SseMessage): SseMessage[] {
    this.#calls.push({ part, input: new ToolInput(), held: [message], ended: false });
    return this.#advance();
  }

  add(part: number, piece: string, message: SseMessage): SseMessage[] {
    const call = this.#calls.find((one) => one.part === part);
    // What comes after whole arguments belongs to them all the same: nothing is dropped.
    if (!call) return [message];
    call.input.push(piece);
    call.held.push(message);
    return this.#advance();
  }

  end(part: number): SseMessage[] {
    const call = this.#calls.find((one) => one.part === part);
    if (call) call.ended = true;
    return this.#advance();
  }

  #advance(): SseMessage[] {
    const out: SseMessage[] = [];
    for (let call = this.#calls[0]; call; call = this.#calls[0]) {
      out.push(...call.held.splice(0));
      if (!call.ended && !call.input.complete) break;
      this.#calls.shift();
    }
    return out;
  }
}
