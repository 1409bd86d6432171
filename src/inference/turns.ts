/** The order in which engines take a conversation, and the places where they take instructions. */
import type { InputPart, SystemTurn, TextPart, Turn } from "./request.ts";

/** The turns as an engine takes them. `instructionsInside` is false if it takes instructions only at the head. */
export function inEngineOrder(turns: readonly Turn[], instructionsInside = true): Turn[] {
  const ordered = withResultsInPlace(turns);
  return instructionsInside ? ordered : withInstructionsAtHead(ordered);
}

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

/** The instructions that stand before everything else, and the rest. */
export function headInstructions(turns: readonly Turn[]): { parts: TextPart[]; rest: Turn[] } {
  let at = 0;
  const parts: TextPart[] = [];
  for (let turn = turns[at]; turn && isSystem(turn); turn = turns[++at]) parts.push(...turn.parts);
  return { parts, rest: turns.slice(at) };
}

/**
 * For engines that take instructions at the head alone: those become one turn, and later ones are said in the user's
 * turn, marked, joined to what the user says beside them (such templates want user and assistant to take turns, too).
 */
export function withInstructionsAtHead(turns: readonly Turn[]): Turn[] {
  const { parts, rest } = headInstructions(turns);
  const moved: Turn[] = parts.length > 0 ? [{ role: "system", parts }] : [];
  for (const turn of rest) {
    const said = isSystem(turn) ? turn.parts.map(marked) : turn.role === "user" ? turn.parts : null;
    const last = moved.at(-1);
    if (said === null) moved.push(turn);
    else if (last?.role === "user") moved[moved.length - 1] = { ...last, parts: [...last.parts, ...said] };
    else moved.push(isSystem(turn) ? { role: "user", parts: said } : turn);
  }
  return moved;
}

function marked({ text }: TextPart): InputPart {
  return { kind: "text", text: `<system>\n${text}\n</system>` };
}
