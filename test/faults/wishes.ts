// Random requests of a client: for a response in one of the three protocols, or for one that the node passes on from
// its engine unchanged.

import type { Chance } from "./chance.ts";
import { protocols, type Spoken } from "./protocols.ts";
import { model, passedModels, unstreamed_tokens_max } from "./rig.ts";

export interface Wish {
  spoken: Pick<Spoken, "path" | "token" | "end" | "tokensOf">;
  body: object;
  stream: boolean;
  /** The number of output tokens that the engine is asked for. */
  wanted: number;
  tokensPerSecond: number;
  /** Set if the node passes the engine's response on unchanged. */
  passed: { searches: number; isWhole(answer: Answer): boolean } | null;
}

/** The body of an unstreamed response, without its output. */
export interface Answer {
  usage: Record<string, number>;
  data?: unknown[];
  results?: unknown[];
}

/**
 * Draws a request. `marker` is a unique word in the request, by which the engine's record of it is matched with the
 * client's.
 */
export function wishOf(chance: Chance, marker: string, tokensPerSecond: number): Wish {
  if (chance.next() < 0.7) return chatOf(chance, marker, tokensPerSecond);
  return chance.pick([embeddingsOf, rerankOf, completionOf, completionOf])(chance, marker, tokensPerSecond);
}

function chatOf(chance: Chance, marker: string, tps: number): Wish {
  const stream = chance.next() < 0.7;
  const isWhole = !stream && chance.next() < 0.4;
  const isLong = !isWhole && chance.next() < 0.04;
  const short = isWhole ? 1 + chance.below(unstreamed_tokens_max) : 5 + chance.below(60);
  const wanted = isLong ? 2_000 + chance.below(5_000) : short;
  const tokensPerSecond = isLong ? 20 * tps : tps;
  const spoken = chance.pick(protocols);
  const prompt = promptOf(tokensPerSecond, wanted, marker);
  const body = { model, stream, ...spoken.body(prompt, isWhole ? unstreamed_tokens_max : undefined) };
  return { spoken, body, stream, wanted, tokensPerSecond, passed: null };
}

/**
 * Draws a request for a completion. Even a long one may be unstreamed, because its hold covers its whole output limit
 * from the start.
 */
function completionOf(chance: Chance, marker: string, tps: number): Wish {
  const stream = chance.next() < 0.5;
  const isLong = chance.next() < 0.04;
  const wanted = isLong ? 2_000 + chance.below(5_000) : 1 + chance.below(60);
  const tokensPerSecond = isLong ? 20 * tps : tps;
  const prompt = promptOf(tokensPerSecond, wanted, marker);
  const spoken = {
    path: "/v1/completions",
    token: /"text":"[^"]/,
    end: /"finish_reason":"/,
    tokensOf: (usage: Record<string, number>) => usage.completion_tokens!,
  };
  const body = { model: passedModels.completion, stream, prompt, max_tokens: wanted + chance.below(5_000) };
  return {
    spoken,
    body,
    stream,
    wanted,
    tokensPerSecond,
    passed: { searches: 0, isWhole: () => true },
  };
}

const numbers = { stream: false, wanted: 0, tokensPerSecond: 0 };
const spokenAt = (path: string) => ({ path, token: /$^/, end: /$^/, tokensOf: () => 0 });

/**
 * Draws a request for embeddings. One response in six is so large that the node starts to send it before it is
 * complete.
 */
function embeddingsOf(chance: Chance, marker: string): Wish {
  const count = chance.next() < 1 / 6 ? 200 + chance.below(300) : 1 + chance.below(20);
  const input = Array.from({ length: count }, (_, index) => `${slowly(chance)}${marker} ${index}`);
  const passed = { searches: 0, isWhole: ({ data }: Answer) => data?.length === count };
  const body = { model: passedModels.embedding, input };
  return { ...numbers, spoken: spokenAt("/v1/embeddings"), body, passed };
}

const documents_per_search = 100;

function rerankOf(chance: Chance, marker: string): Wish {
  const documents = Array.from({ length: 1 + chance.below(250) }, (_, index) => `Document ${index}`);
  const searches = Math.ceil(documents.length / documents_per_search);
  const passed = { searches, isWhole: ({ results }: Answer) => results?.length === documents.length };
  const body = { model: passedModels.rerank, query: `${slowly(chance)}${marker}`, documents };
  return { ...numbers, spoken: spokenAt("/v1/rerank"), body, passed };
}

const slowly = (chance: Chance) => `[simulator: ttft=${chance.below(600)}] `;
const promptOf = (tps: number, tokens: number, marker: string) => `[simulator: tps=${tps} tokens=${tokens}] ${marker}`;
