/** Finds what a model of an engine is for, by its answers to one short request of each kind. */
import type { ModelKind } from "../../core/inference/model.ts";
import type { Ask, EngineReply } from "../engine.ts";
import { record } from "../record.ts";
import { type Finding, verdictsOf } from "./check.ts";
import { type Judged, no, unknown, yes } from "./question.ts";

interface KindQuestion {
  kind: ModelKind;
  path: string;
  body: Record<string, unknown>;
  /** The conclusion from a right answer, in words; null for a wrong answer. */
  saw(body: Record<string, unknown>): string | null;
}

const [word, document] = ["hello", "The tide is out at noon."];

/**
 * The questions. The first that is answered decides the kind, so their order matters: chat engines answer bare prompts
 * too, and some engines rank with the vectors of any embedding model (vLLM), while others return a meaningless vector
 * for a model that ranks (llama.cpp).
 */
const kindQuestions: readonly KindQuestion[] = [
  {
    kind: "chat",
    path: "/chat/completions",
    body: { messages: [{ role: "user", content: word }], max_tokens: 1 },
    saw: ({ choices }) => (record(first(choices)).message ? "a message" : null),
  },
  {
    kind: "completion",
    path: "/completions",
    body: { prompt: word, max_tokens: 1 },
    saw: ({ choices }) => (typeof record(first(choices)).text === "string" ? "a text" : null),
  },
  {
    kind: "embedding",
    path: "/embeddings",
    body: { input: word },
    saw({ data }) {
      const { embedding } = record(first(data));
      return Array.isArray(embedding) && embedding.length > 1 ? `a vector of ${embedding.length} numbers` : null;
    },
  },
  {
    kind: "rerank",
    path: "/rerank",
    body: { query: word, documents: [document] },
    saw: ({ results }) => (typeof record(first(results)).relevance_score === "number" ? "scores" : null),
  },
];

/** Asks the questions about all four kinds, so that the findings show which other requests the model answers. */
export async function kindFindings(ask: Ask, base: string, model: string, asks?: (does: string) => void) {
  const findings: Finding[] = [];
  for (const { kind, path, body, saw } of kindQuestions) {
    const does = `answers ${path}`;
    asks?.(does);
    const once = () => ask(base + path, { model, ...body });
    const answer = await once();
    const judged = judgedBy(answer.status === failing ? await once() : answer, saw);
    findings.push({ question: questionOf(kind), does, expected: null, ...judged });
  }
  const both = [questionOf("embedding"), questionOf("rerank")];
  const isBoth = findings.filter(({ question, verdict }) => verdict === "yes" && both.includes(question)).length === 2;
  if (!isBoth || (await ranksByVectors(ask, base, model))) return findings;
  const meaningless = no("vectors by which it does not rank");
  return findings.map((one) => (one.question === both[0] ? { ...one, ...meaningless } : one));
}

const score_difference_max = 0.02;

/**
 * Whether a ranking's score is only the cosine between the vectors of document and query, unchanged or mapped to the
 * range from 0 to 1.
 */
async function ranksByVectors(ask: Ask, base: string, model: string): Promise<boolean> {
  const embedded = record((await ask(`${base}/embeddings`, { model, input: [word, document] })).body);
  const ranked = record((await ask(`${base}/rerank`, { model, query: word, documents: [document] })).body);
  const [one, other] = (Array.isArray(embedded.data) ? embedded.data : []).map((item) => record(item).embedding);
  const score = record(first(ranked.results)).relevance_score;
  if (!Array.isArray(one) || !Array.isArray(other) || typeof score !== "number") return false;
  const cosine = cosineOf(one, other);
  return [cosine, (1 + cosine) / 2].some((expected) => Math.abs(expected - score) < score_difference_max);
}

function cosineOf(one: readonly number[], other: readonly number[]): number {
  const product = one.reduce((sum, number, at) => sum + number * other[at]!, 0);
  return product / (Math.hypot(...one) * Math.hypot(...other));
}

/** The kind that the findings show; null if they leave it open. */
export function kindIn(findings: readonly Finding[]): ModelKind | null {
  const verdicts = verdictsOf(findings);
  const decides = kindQuestions.find(({ kind }) => verdicts.get(questionOf(kind)) !== "no");
  return decides && verdicts.get(questionOf(decides.kind)) === "yes" ? decides.kind : null;
}

export function pathsIn(findings: readonly Finding[]): string[] {
  const verdicts = verdictsOf(findings);
  return kindQuestions.filter(({ kind }) => verdicts.get(questionOf(kind)) === "yes").map(({ path }) => path);
}

export function isKindAsked(findings: readonly Finding[]): boolean {
  return verdictsOf(findings).has(questionOf("chat"));
}

function questionOf(kind: ModelKind): string {
  return `kind_${kind}`;
}

/** Statuses that say nothing about the request: the key is wrong, the time is up, or the engine is busy. */
const passing = new Set([401, 402, 403, 408, 425, 429]);
/**
 * llama.cpp answers a chat with this status if it was started to embed. Other engines may return it once by accident,
 * so the question is repeated.
 */
const failing = 500;
/** The status of a server that lacks the path, or was not started for it. */
const lacking = 501;

function judgedBy({ status, body }: EngineReply, saw: KindQuestion["saw"]): Judged {
  if (status === null) return unknown("no answer");
  if (status === failing) return no("fails (500), twice");
  if (status === lacking || (status >= 400 && status < 500 && !passing.has(status))) return no(`refused (${status})`);
  if (status !== 200) return unknown(`status ${status}`);
  const seen = saw(record(body));
  return seen === null ? no("another answer") : yes(seen);
}

function first(list: unknown): unknown {
  return Array.isArray(list) ? list[0] : undefined;
}
