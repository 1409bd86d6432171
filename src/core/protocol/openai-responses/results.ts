/**
 * Joins the results of each call. Codex sends several results of one call if its script reports its progress
 * (`notify`), and further results may come many turns after the call. Engines accept one result, directly after its
 * call, so later results are appended to the first.
 */
import type { AssistantPart, ToolTurn } from "../../inference/request.ts";

export class Results {
  /**
   * The key is the id of a call, the value is the number of calls with this id that have no result yet: engines give
   * one id to several calls.
   */
  readonly #unanswered = new Map<string, number>();
  readonly #latest = new Map<string, ToolTurn>();

  called(parts: readonly AssistantPart[]): void {
    for (const part of parts) {
      if (part.kind === "tool-call") this.#unanswered.set(part.callId, this.#waiting(part.callId) + 1);
    }
  }

  /**
   * Appends the result to an earlier result of the same call. Returns false if there is no earlier result: the new one
   * is then a turn of its own.
   */
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
