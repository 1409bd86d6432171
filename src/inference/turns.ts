/** The order in which engines take a conversation, and the places where they take instructions. */
import type { SystemTurn, TextPart, Turn } from "./request.ts";

/**
 * Tool results directly after the assistant turn that called, before any text, image or instruction that the caller wrote
 * between them: chat templates and Messages engines ask for it. Whatever else there is keeps its order.
 */
export function withResultsInPlace(turns: readonly Turn[]): Turn[] {
  const ordered: Turn[] = [];
  let waiting: Turn[] = [];
  let callsAreOpen = false;
  for (const turn of turns) {
    if (turn.role === "assistant") {
      ordered.push(...waiting, turn);
      waiting = [];
      callsAreOpen = turn.parts.some((part) => part.kind === "tool-call");
    } else if (turn.role === "tool" || !callsAreOpen) {
      ordered.push(turn);
    } else {
      waiting.push(turn);
    }
  }
  ordered.push(...waiting);
  return ordered;
}

export function isSystem(turn: Turn): turn is SystemTurn {
  return turn.role === "system" || turn.role === "developer";
}

/** The instructions that stand before everything else, and the rest. */
export function headInstructions(turns: readonly Turn[]): { parts: TextPart[]; rest: Turn[] } {
  let at = 0;
  const parts: TextPart[] = [];
  for (let turn = turns[at]; turn && isSystem(turn); turn = turns[++at]) parts.push(...turn.parts);
  return { parts, rest: turns.slice(at) };
}
