/**
 * Joins later results of a call to its first one: engines accept one result, directly after its call. Codex sends
 * several if its script reports its progress (`notify`), maybe many turns after the call.
 */
import type { AssistantPart, ToolTurn } from "../../inference/request.ts";

export class Results {
  /** For each id, the number of calls without a result: engines give one id to several calls. */
  readonly #unanswered = new Map<string, number>();
  readonly #latest = new Map<string, ToolTurn>();

  called(parts: readonly AssistantPart[]): void {
    for (const part of parts) {
      if (part.kind === "tool-call") this.#unanswered.set(part.callId, this.#waiting(part.callId) + 1);
    }
  }

  /** Appends the result to an earlier one of its call. False if there is none: it is then a turn of its own. */
  joins(turn: ToolTurn): boolean {
    const { callId, parts } = turn;
    const waiting = this.#waiting(callId);
    const earlier = this.#latest.get(callId);
    if (waiting === 0 && earlier) {
      earlier.parts.push(...parts);
      return true;
    }
    this.#unanswered.set(callId, Math.max(0, waiting - 1));
    this.#latest.set(callId, turn);
    return false;
  }

  #waiting(callId: string): number {
    return this.#unanswered.get(callId) ?? 0;
  }
}
