/**
 * Parts of a request that an engine may refuse, and without which it can still answer: fields that Sluice adds to what
 * the caller asked for (a summary, and reasoning and opaque values of earlier answers), and proofs of reasoning
 * (signatures, encrypted reasoning), which another engine may have made. If a refusal names such a part, the request is
 * sent again without it. Pure.
 */
import type { AssistantPart, InferenceRequest, ReasoningPart, Turn } from "../inference/request.ts";
import { isCarried } from "./carried.ts";
import type { Dialect } from "./dialect.ts";
import { textOf } from "./json.ts";
import { headOf } from "./overflow.ts";
import { errorOf } from "./refusal.ts";

interface Asked {
  request: InferenceRequest;
  dialect: Dialect;
}

/**
 * The dialect or the request without the part that the refusal names; null if the refusal names no part that can be
 * left out.
 */
export function withoutRefused(asked: Asked, status: number, body: unknown): Partial<Asked> | null {
  if (status !== 400 && status !== 422) return null;
  const error = errorOf(body);
  const said = headOf(error);
  const dialect = withoutField(asked, `${textOf(error.param)}\n${said}`);
  if (dialect) return { dialect };
  const request = namesProof.test(`${textOf(error.code)}\n${said}`) ? withoutProofs(asked.request) : null;
  return request && { request };
}

/** The dialect without the fields that the refusal names; null if the request had none of those fields. */
function withoutField({ dialect, request: { turns, reasoning } }: Asked, said: string): Dialect | null {
  const isNamed = (field: string) => new RegExp(`(?:^|['"\`.\\]])${field}(?:$|['"\`.\\[\\s])`, "m").test(said);
  const isOurs = dialect.summarizes && reasoning?.native?.protocol !== "openai-responses";
  if (isOurs && said.includes("reasoning.summary")) return { ...dialect, summarizes: false };
  const hasThoughts = turns.some(({ parts }) => parts.some(({ kind }) => kind === "reasoning"));
  if (!hasThoughts || saysMissing.test(said)) return null;
  const out = dialect.reasoning.out.filter((field) => !isNamed(field));
  const carries = dialect.carries.filter(({ path }) => !isNamed(path[0]!));
  if (out.length === dialect.reasoning.out.length && carries.length === dialect.carries.length) return null;
  return { ...dialect, reasoning: { ...dialect.reasoning, out }, carries };
}

/**
 * Matches the words in which engines ask for a field, such as DeepSeek for the reasoning of a conversation with tools.
 */
const saysMissing = /\bmissing\b|\brequired\b|\bmust be (?:passed|provided)\b/i;

/** Matches the words in which engines refuse proofs of reasoning. */
const namesProof = /\bsignature\b|encrypted[ _]content|\bdata\b.{1,3} in .{1,2}redacted_thinking/i;

/**
 * The request without the proofs of reasoning in the turns before the model's last turn. If only the last turn has
 * proofs, those are removed; null if no turn has any. The last turn's proofs are kept at first, because engines that
 * sign reasoning require one before a call whose result follows, and have most likely made it themselves.
 */
function withoutProofs(request: InferenceRequest): InferenceRequest | null {
  const { turns } = request;
  const last = turns.findLastIndex(({ role }) => role === "assistant");
  const isEarlier = turns.some((turn, at) => at < last && hasProof(turn));
  if (!isEarlier && !turns.some(hasProof)) return null;
  return { ...request, turns: turns.map((turn, at) => (isEarlier && at === last ? turn : unproven(turn))) };
}

function hasProof(turn: Turn): boolean {
  return turn.role === "assistant" && turn.parts.some(isProven);
}

/** Whether the part is reasoning with a proof of its maker: a signature, or reasoning that is encrypted. */
export function isProven(part: AssistantPart): part is ReasoningPart {
  if (part.kind !== "reasoning") return false;
  return part.encrypted !== undefined || (part.signature !== undefined && !isCarried(part.signature));
}

function unproven(turn: Turn): Turn {
  if (turn.role !== "assistant") return turn;
  const parts = turn.parts.flatMap((part): AssistantPart[] => {
    if (!isProven(part)) return [part];
    return part.text === "" ? [] : [{ kind: part.kind, text: part.text }];
  });
  return { ...turn, parts };
}
