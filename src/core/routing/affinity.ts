/**
 * Recognises a conversation from turn to turn: by the client's name for the conversation, or else by the beginning that
 * all its requests share. So each request is sent to the engine whose prefix cache has the earlier turns. Pure.
 */
import type { InferenceRequest, Turn } from "../inference/request.ts";

export interface Affinity {
  /** The organization is part of the key, so that two organizations never share a session. */
  organizationId: string;
  /** The client's name for the session, from a header. */
  session: string | null;
}

/** The key of the session, a hash; null if nothing identifies the session. */
export function affinityKey({ organizationId, session }: Affinity, request: InferenceRequest): number | null {
  const named = session ?? request.cacheKey;
  const scope = numberOf(`${organizationId}\n${request.model}`, 0);
  return named === undefined ? headKey(request, scope) : numberOf(named, scope);
}

/** The key of a conversation's beginning, which all its requests share: its instructions, tools, and first turn. */
function headKey({ turns, tools }: InferenceRequest, scope: number): number | null {
  const first = turns.findIndex(({ role }) => role !== "system" && role !== "developer");
  const head = first < 0 ? turns : turns.slice(0, first + 1);
  const texts = head.flatMap(textsOf);
  if (texts.length === 0) return null;
  return [...tools.map(({ name }) => name), ...texts].reduce((key, text) => numberOf(ends(text), key), scope);
}

function textsOf({ parts }: Turn): string[] {
  return parts.flatMap((part) => ("text" in part ? [part.text] : []));
}

const end_codeUnits = 2048;

/**
 * The two ends of a text, and its length. Long texts differ at their ends, where the user's words begin or end, so the
 * middle is not hashed.
 */
function ends(text: string): string {
  if (text.length <= 2 * end_codeUnits) return text;
  return `${text.length} ${text.slice(0, end_codeUnits)}${text.slice(-end_codeUnits)}`;
}

/** A hash of 53 bits, as many as a JavaScript number holds exactly. */
function numberOf(text: string, seed: number): number {
  return Number(BigInt.asUintN(53, BigInt(Bun.hash(text, seed))));
}

/**
 * The salt that an organization's requests give to an engine's prefix cache. With different salts, organizations do not
 * see each other's entries.
 */
export function saltOf(organizationId: string): string {
  return new Bun.CryptoHasher("sha256").update(`sluice prefix cache\n${organizationId}`).digest("base64url");
}
