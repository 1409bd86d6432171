/**
 * Makes the complete answer before its first token is sent: the parts of each choice in the order of generation, the
 * finish reason, and the usage. The answer is the same whether it is streamed or not.
 */
import { callsFor } from "./calls.ts";
import type { AnswerInput, Conversation } from "./conversation.ts";
import type { Directives } from "./directives.ts";
import { type Choice, capped, type Part, type SimulatedAnswer, usageOf } from "./parts.ts";
import type { ChatRequest } from "./request.ts";
import { satisfying } from "./schema.ts";
import { filler, type Random, random, shortened, thinking, tokens } from "./text.ts";

export function answerTo(input: AnswerInput): SimulatedAnswer {
  const { request, conversation, directives } = input;
  const choices = Array.from({ length: request.choices }, (_, index) => choiceFor(input, index));
  return { choices, usage: usageOf(choices, conversation.prompt_tokens, directives.numbers.cached ?? 0) };
}

function choiceFor(input: AnswerInput, index: number): Choice {
  const { request, conversation, directives } = input;
  const next = random(conversation.seed + index);
  const calls = callsFor(input, index, next);
  const reasoning = reasoningFor(request, directives, next);
  const spoken = ordered(reasoning, textFor(input, next, calls.length > 0), calls, directives);
  const parts = capped(spoken, request.tokens_max);
  const whole = parts.length === spoken.length && parts.every((part, at) => part.tokens === spoken[at]!.tokens);
  return { parts, finish: finishOf(parts, whole, directives) };
}

function finishOf(parts: Part[], whole: boolean, directives: Directives): string {
  if (directives.finish !== null) return directives.finish;
  if (!whole || directives.quirks.has("cut-arguments")) return "length";
  return parts.some((part) => part.kind === "call") && !directives.quirks.has("stop-with-tools")
    ? "tool_calls"
    : "stop";
}

function ordered(reasoning: Part[], text: Part[], calls: Part[], directives: Directives): Part[] {
  if (directives.quirks.has("reasoning-after-text")) return [...text, ...reasoning, ...calls];
  if (directives.quirks.has("text-after-tools")) return [...reasoning, ...calls, ...text];
  return [...reasoning, ...text, ...calls];
}

const efforts: Record<string, number> = { none: 0, minimal: 8, low: 16, medium: 32, high: 64, xhigh: 96, max: 128 };

function reasoningFor(request: ChatRequest, directives: Directives, next: Random): Part[] {
  const quirky = directives.quirks.has("reasoning-field") || directives.quirks.has("reasoning-after-text");
  const effort = request.effort ?? (quirky ? "low" : "none");
  const count = directives.numbers.reasoning ?? efforts[effort] ?? efforts.medium!;
  return count > 0 ? [{ kind: "reasoning", tokens: thinking(count, next) }] : [];
}

function textFor(input: AnswerInput, next: Random, calling: boolean): Part[] {
  const { directives } = input;
  if (calling && !directives.flags.has("text-with-calls") && !directives.quirks.has("text-after-tools")) return [];
  if (directives.flags.has("refusal")) {
    return [{ kind: "refusal", tokens: tokens("I am the Sluice simulator, and I was told to refuse this.") }];
  }
  const all = calling ? tokens("The Sluice simulator calls for help.") : words(input, next);
  return [{ kind: "text", tokens: stopped(all, input.request.stops) }];
}

function words({ request, conversation, directives, says }: AnswerInput, next: Random): string[] {
  const { format } = request;
  if (format.kind === "schema") return tokens(JSON.stringify(satisfying(format.schema, next)));
  if (format.kind === "json") {
    return tokens(JSON.stringify({ simulator: says, question: shortened(conversation.question, echo_characters_max) }));
  }
  const echoes = directives.flags.has("echo");
  const head = tokens(echoes ? conversation.question : introduction(conversation, says));
  const count = directives.numbers.tokens;
  if (count !== undefined) return [...head.slice(0, count), ...filler(count - head.length, true, next)];
  return echoes ? head : [...head, ...filler(30 + Math.floor(next() * 50), false, next)];
}

const echo_characters_max = 200;
const result_characters_max = 120;

function introduction(conversation: Conversation, says: string): string {
  const sentences = [says];
  if (conversation.images > 0) sentences.push(`I was given ${conversation.images} image(s).`);
  if (conversation.files > 0) sentences.push(`I was given ${conversation.files} file(s).`);
  for (const result of conversation.results) {
    sentences.push(`The tool ${result.name} said: “${shortened(result.text, result_characters_max)}”.`);
  }
  if (conversation.question !== "") {
    sentences.push(`You said: “${shortened(conversation.question, echo_characters_max)}”.`);
  }
  return sentences.join(" ");
}

/**
 * The tokens before the first stop sequence. If the sequence begins in the middle of a token, the token's beginning is
 * kept.
 */
function stopped(all: string[], stops: string[]): string[] {
  const text = all.join("");
  const places = stops.filter((stop) => stop !== "").map((stop) => text.indexOf(stop));
  const end = Math.min(...places.filter((place) => place >= 0));
  if (end === Number.POSITIVE_INFINITY) return all;
  const kept: string[] = [];
  for (let length = 0, at = 0; length < end; at++) {
    const piece = all[at]!.slice(0, end - length);
    kept.push(piece);
    length += piece.length;
  }
  return kept;
}
