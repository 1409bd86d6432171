/**
 * Leaves out the oldest turns of a conversation that is to be summarized, if the conversation does not fit into the model's
 * context: docs/design/protocols.md, Compaction.
 */
import { outputTokensReserved } from "../../core/admission/allowance.ts";
import type { Call } from "../../core/http/call.ts";
import { leftOutNotice } from "../../core/inference/compaction.ts";
import { mediaOf } from "../../core/inference/media.ts";
import type { InferenceRequest, InputPart, Turn, UserTurn } from "../../core/inference/request.ts";
import { headInstructions, isCall } from "../../core/inference/turns.ts";
import type { CatalogModel } from "../../core/routing/catalog.ts";
import type { InputEstimate } from "../../core/usage/input-estimate.ts";

/**
 * Leaves out the turns that are not expected to fit beside the summary, and returns the size of what remains, in bytes.
 * If the engine refuses what remains, more is left out (compacting.ts).
 */
export async function fittedBytes(
  inputEstimate: Pick<InputEstimate, "expected">,
  { pause }: Pick<Call, "pause">,
  model: CatalogModel,
  request: InferenceRequest,
): Promise<number> {
  const bytes = bytesOf(request.turns);
  const expected = inputEstimate.expected(model, mediaOf(request), bytes);
  const room = model.contextTokens - outputTokensReserved(model);
  await pause(bytes);
  if (expected <= room) return bytes;
  leaveOut(request, room / expected);
  return bytesOf(request.turns);
}

const turnBytes = 32;
/** The bytes of text that count as one token of media. */
const bytesPerToken = 4;

/** The approximate size of the turns on the wire. */
export function bytesOf(turns: readonly Turn[]): number {
  let bytes = turns.length * turnBytes;
  for (const turn of turns) for (const part of turn.parts) bytes += Buffer.byteLength(contentOf(part));
  return bytes;
}

function contentOf(part: Turn["parts"][number]): string {
  switch (part.kind) {
    case "tool-call":
      return part.arguments;
    case "image":
      return part.url;
    case "file":
    case "audio":
      return part.data;
    default:
      return part.text;
  }
}

/** The turn's weight in the context, in bytes of text. Media count by their tokens, not by their bytes. */
function weightOf(turn: Turn): number {
  if (turn.parts.some(isMedium)) {
    const { bytes, tokens } = mediaOf({ turns: [turn] });
    return bytesOf([turn]) - bytes + tokens * bytesPerToken;
  }
  let weight = turnBytes;
  for (const part of turn.parts) weight += contentOf(part).length;
  return weight;
}

function isMedium({ kind }: Turn["parts"][number]): boolean {
  return kind === "image" || kind === "file" || kind === "audio";
}

/**
 * Removes the oldest turns, in place, until at most `share` of the conversation remains. Returns the share that
 * remains, or 1 if nothing can be removed. Instructions at the head and an earlier summary stay, and a tool's result is
 * removed together with its call. A notice takes the place of the removed turns.
 */
export function leaveOut(request: Pick<InferenceRequest, "turns" | "compaction">, share: number): number {
  const { turns, compaction } = request;
  if (!compaction) return 1;
  const head = turns.length - headInstructions(turns).rest.length;
  const middle = turns.slice(compaction.notice ? head + 1 : head, -1);
  const weights = new Map(middle.map((turn) => [turn, weightOf(turn)]));
  const whole = sumOf(middle, weights);
  const kept = withoutOrphanResults(withoutOldest(middle, compaction.summary, weights, whole - share * whole));
  if (kept.length === middle.length || kept.every((turn) => turn === compaction.summary)) return 1;
  compaction.leftOutTurns += middle.length - kept.length;
  compaction.notice = noticeTurn(compaction.leftOutTurns);
  const after = [compaction.notice, ...kept, turns.at(-1)!];
  turns.length = head;
  for (const turn of after) turns.push(turn);
  return sumOf(kept, weights) / whole;
}

type Weights = ReadonlyMap<Turn, number>;

function sumOf(turns: readonly Turn[], weights: Weights): number {
  let sum = 0;
  for (const turn of turns) sum += weights.get(turn)!;
  return sum;
}

/** The turns without the oldest ones, whose weights add up to at least `excess`. The newest turn always stays. */
function withoutOldest(turns: readonly Turn[], summary: Turn | null, weights: Weights, excess: number): Turn[] {
  let gone = 0;
  const newest = turns.at(-1);
  return turns.filter((turn) => {
    if (gone >= excess || turn === newest || turn === summary) return true;
    gone += weights.get(turn)!;
    return false;
  });
}

function withoutOrphanResults(turns: readonly Turn[]): Turn[] {
  const called = new Set<string>();
  return turns.filter((turn) => {
    if (turn.role === "tool") return called.has(turn.callId);
    if (turn.role === "assistant") {
      for (const part of turn.parts) if (isCall(part) && part.kind === "tool-call") called.add(part.callId);
    }
    return true;
  });
}

function noticeTurn(turns: number): UserTurn {
  const part: InputPart = { kind: "text", text: leftOutNotice(turns) };
  return { role: "user", parts: [part] };
}
