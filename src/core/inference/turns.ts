/** Puts a conversation into the order that engines accept, with instructions at positions that engines accept. */
import type { InputPart, SystemTurn, TextPart, Turn } from "./request.ts";

/**
 * The turns in an order that the engine takes. `instructionsInside`: whether the engine accepts instructions after the
 * beginning of the conversation.
 */
export function inEngineOrder(turns: readonly Turn[], instructionsInside = true): Turn[] {
  const ordered = withResultsInPlace(turns);
  return instructionsInside ? ordered : withInstructionsAtHead(ordered);
}

/**
 * Moves tool results directly behind the assistant turn that made the calls, before anything that the caller wrote
 * between them. Chat templates and Messages engines require this order. Other turns keep their order.
 */
export function withResultsInPlace(turns: readonly Turn[]): Turn[] {
  const ordered: Turn[] = [];
  let waiting: Turn[] = [];
  let callsAreOpen = false;
  for (const turn of turns) {
    if (turn.role === "assistant") {
      ordered.push(...waiting, turn);
      waiting = [];
      callsAreOpen = turn.parts.some(isCall);
    } else if (turn.role === "tool" || !callsAreOpen) {
      ordered.push(turn);
    } else {
      waiting.push(turn);
    }
  }
  ordered.push(...waiting);
  return ordered;
}

export function isCall({ kind }: { kind: string }): boolean {
  return kind === "tool-call";
}

export function isSystem(turn: Turn): turn is SystemTurn {
  return turn.role === "system" || turn.role === "developer";
}

/** Splits a conversation into the instructions at its head and the rest. */
export function headInstructions(turns: readonly Turn[]): { parts: TextPart[]; rest: Turn[] } {
  let at = 0;
  const parts: TextPart[] = [];
  for (let turn = turns[at]; turn && isSystem(turn); turn = turns[++at]) parts.push(...turn.parts);
  return { parts, rest: turns.slice(at) };
}

/**
 * Adapts a conversation to engines that take instructions only at the head. Instructions at the head become one turn.
 * Later ones become marked text of the user, joined to the user's own turn, because the chat templates of such engines
 * also require that user and assistant alternate.
 */
export function withInstructionsAtHead(turns: readonly Turn[]): Turn[] {
  const { parts: head, rest } = headInstructions(turns);
  const moved: Turn[] = head.length > 0 ? [{ role: "system", parts: head }] : [];
  for (const turn of rest) {
    const parts = isSystem(turn) ? turn.parts.map(marked) : turn.role === "user" ? turn.parts : null;
    const last = moved.at(-1);
    if (parts === null) moved.push(turn);
    else if (last?.role === "user") moved[moved.length - 1] = { ...last, parts: [...last.parts, ...parts] };
    else moved.push(isSystem(turn) ? { role: "user", parts } : turn);
  }
  return moved;
}

function marked({ text }: TextPart): InputPart {
  return { kind: "text", text: `<system>\n${text}\n</system>` };
}
