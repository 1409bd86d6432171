/**
 * Results of calls, one of each call. Codex sends several where a script reports on its way (`notify`), and the later ones
 * may stand far behind; engines take one, directly after the call. So what comes after the first is more of the same.
 */
import type { AssistantPart, ToolTurn } from "../../inference/request.ts";

export class Results {
  /** Calls of this id that have no result yet: engines give one id to several. */
  readonly #unanswered = new Map<string, number>();
  readonly #latest = new Map<string, ToolTurn>();

  called(parts: readonly AssistantPart[]): void {
    for (const part of parts) {
      if (part.kind === "tool-call") this.#unanswered.set(part.callId, this.#waiting(part.callId) + 1);
    }
  }

  /** Whether it has become part of an earlier one, so that it is no turn of its own. */
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
