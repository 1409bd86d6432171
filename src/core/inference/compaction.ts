/**
 * Compaction replaces a conversation by a summary, so that it can go on. The model is asked for the summary after the
 * last turn. If the conversation does not fit into the context, the oldest turns are left out.
 * docs/design/protocols.md, Compaction.
 */
import { Fault } from "./fault.ts";
import { mediaOf } from "./media.ts";
import type { InferenceRequest, InputPart, Turn, UserTurn } from "./request.ts";
import { headInstructions, isCall } from "./turns.ts";

/** The instruction that asks the model for a summary: docs/design/protocols.md, Compaction. */
const instruction = `Stop here: do not go on with the task and call no tools. This conversation is about to be replaced by what you write now, so write down everything that is needed to go on without it, under these headings:

Goal: what the user wants, and every constraint and preference that still holds.
Decisions: what was decided, found out or ruled out, and why.
Files and state: each file, command and resource that matters, what was changed in it, and how it stands now.
Open ends: what is unfinished, in the order in which it is to be done, and the very next step.
Verbatim: every name, path, identifier, number, error and quoted wording that must be repeated exactly.

If an earlier summary stands in the conversation, carry over all of it that still holds. Invent nothing. Use at most 2,000 words, in the language of the conversation, and write nothing but this summary.`;

export function instructionTurn(): UserTurn {
  return { role: "user", parts: [{ kind: "text", text: instruction }] };
}

const preface = "This summary stands in place of the conversation up to here. You wrote it yourself; go on from it.";

/** The turn that replaces the summarized turns in a later conversation. */
export function summaryTurn(summary: string): UserTurn {
  return { role: "user", parts: [{ kind: "text", text: `${preface}\n\n${summary}` }] };
}

export function isSummary({ role, parts: [part] }: Turn): boolean {
  return role === "user" && part?.kind === "text" && part.text.startsWith(preface);
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

/** The turns without the tool results whose calls were left out. */
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

/** The notice of how many turns were left out, for the model and for readers of its summary. */
export function leftOutNotice(turns: number): string {
  const [what, verb] = turns === 1 ? ["oldest message", "was"] : [`${turns} oldest messages`, "were"];
  return `[The ${what} of the conversation did not fit into the model's context and ${verb} left out.]`;
}

function noticeTurn(turns: number): UserTurn {
  const part: InputPart = { kind: "text", text: leftOutNotice(turns) };
  return { role: "user", parts: [part] };
}

/** The fault if the model wrote no summary: it called a tool that it was not given, or wrote nothing. */
export function noSummary(): Fault {
  return new Fault("upstream_unavailable", "The model wrote no summary of the conversation. Please try again.", {
    retryAfterSeconds: 1,
  });
}
