/**
 * POST /v1/chat/completions: reads a request, and sends the answer at the requested pace and with the requested faults.
 */
import { type Action, streamActions, wholeActions } from "./actions.ts";
import { answerTo } from "./answer.ts";
import type { ChunkOptions } from "./chunks.ts";
import type { Clock } from "./clock.ts";
import { completion } from "./completion.ts";
import { beginningIn, restOf } from "./continued.ts";
import { readConversation } from "./conversation.ts";
import { type Directives, parseDirectives } from "./directives.ts";
import { faultResponse } from "./errors.ts";
import { dueAt, generatedBy, pacedBody, type TokenPace } from "./paced-body.ts";
import type { SimulatedAnswer } from "./parts.ts";
import { SimulatorRefusal } from "./refusal.ts";
import { type ChatRequest, readRequest } from "./request.ts";
import type { Watch } from "./watch.ts";

export interface ChatOptions {
  /** The milliseconds to the first token; 0 by default. */
  ttft_ms?: number;
  /** The pace of generation; 0, the default: as fast as possible. */
  tokens_per_second?: number;
  /** Directives for every request. The directives of the request itself override these. */
  directives?: string;
  /**
   * Whether the simulator's first sentence, in which it introduces itself, names the requested model; true by default.
   */
  namesModel?: boolean;
}

interface Call {
  request: Request;
  clock: Clock;
  watch: Watch | undefined;
  directives: Directives;
  pace: TokenPace;
}

/**
 * An API other than chat completions: translates its requests into chat requests, and the chunks and responses of chat
 * into its own form.
 */
export interface Form {
  asked(body: unknown): unknown;
  written(json: string): string;
}

/** Answers a request. Throws a SimulatorRefusal if the request cannot be answered. */
export type Handler = (
  request: Request,
  options: ChatOptions,
  clock: Clock,
  watch: Watch | undefined,
) => Promise<Response>;

/** The handler of requests in this form; null: of chat completions. */
export const chatIn =
  (form: Form | null): Handler =>
  async (request, options, clock, watch) => {
    const start_ms = performance.now();
    const text = await request.text();
    watch?.body(text);
    const body = parsed(text);
    if (body === undefined) throw new SimulatorRefusal(400, "Simulator: the body is not JSON.", "invalid_json");
    const wholeRequest = readRequest(form ? form.asked(body) : body);
    const begun = wholeRequest.continues ? beginningIn(wholeRequest) : null;
    const chatRequest = begun?.request ?? wholeRequest;
    const conversation = readConversation(chatRequest);
    const directives = parseDirectives(
      options.directives ?? "",
      request.headers.get("x-simulator") ?? "",
      conversation.directives,
    );
    const pace: TokenPace = {
      start_ms,
      first_ms: directives.numbers.ttft ?? options.ttft_ms ?? 0,
      tokens_per_second: directives.numbers.tps ?? options.tokens_per_second ?? 0,
    };
    const call: Call = { request, clock, watch, directives, pace };
    await waitUntil(start_ms + (directives.numbers["slow-headers"] ?? 0), call);
    if (request.signal.aborted) return clientLeft(call);
    const fault = faultResponse(directives, chatRequest.stream, conversation.prompt_tokens);
    if (fault) {
      watch?.ended("complete");
      return fault;
    }
    const says = `This is the Sluice simulator${options.namesModel === false ? "" : ` answering as “${chatRequest.model}”`}.`;
    const whole = answerTo({ request: chatRequest, conversation, directives, says });
    const answer = begun ? restOf(whole, begun.beginning, wholeRequest.tokens_max) : whole;
    const shape = { ...shapeOf(chatRequest, directives, conversation.seed), ...(form && { written: form.written }) };
    return chatRequest.stream ? streamed(call, answer, shape) : unstreamed(call, answer, shape);
  };

export const chat = chatIn(null);

function shapeOf(chatRequest: ChatRequest, directives: Directives, seed: number): ChunkOptions {
  const hasUsage = !directives.flags.has("no-usage");
  return {
    id: `chatcmpl-sim${seed.toString(16).padStart(8, "0")}`,
    model: chatRequest.model,
    created_s: Math.floor(Date.now() / 1000),
    includeUsage: chatRequest.includeUsage && hasUsage,
    runningUsage: chatRequest.runningUsage && hasUsage,
    topLogprobs: chatRequest.topLogprobs,
    tokensPerChunk: directives.numbers["per-chunk"] ?? 1,
    quirks: directives.quirks,
    finishes: !directives.flags.has("no-finish"),
  };
}

function streamed(call: Call, answer: SimulatedAnswer, shape: ChunkOptions): Response {
  const { directives, pace } = call;
  const holdsBack = pace.first_ms > 0 || directives.flags.has("stall") || directives.numbers["stall-after"] === 0;
  return pacedResponse(call, streamActions(answer, shape, directives, holdsBack), "text/event-stream; charset=utf-8");
}

async function unstreamed(call: Call, answer: SimulatedAnswer, shape: ChunkOptions): Promise<Response> {
  const { directives, pace, watch, request } = call;
  const json = JSON.stringify(completion(answer, shape, !directives.flags.has("no-usage")));
  const text = shape.written?.(json) ?? json;
  const faults = ["stall", "stall-after", "cut-after", "malformed-after"] as const;
  if (faults.some((fault) => directives.flags.has(fault))) {
    return pacedResponse(call, wholeActions(text, answer, directives), "application/json");
  }
  const total = answer.usage.completion_tokens;
  await waitUntil(dueAt(pace, total), call);
  watch?.tokens(generatedBy(pace, performance.now(), total));
  if (request.signal.aborted) return clientLeft(call);
  watch?.ended("complete");
  return new Response(text, { headers: headers(directives, "application/json") });
}

function pacedResponse(
  { directives, pace, clock, watch }: Call,
  actions: Iterator<Action>,
  contentType: string,
): Response {
  return new Response(pacedBody(actions, pace, clock, watch), { headers: headers(directives, contentType) });
}

export function headers(directives: Directives, contentType: string): Record<string, string> {
  return {
    "content-type": directives.flags.has("wrong-content-type") ? "text/plain" : contentType,
    "cache-control": "no-cache",
  };
}

/** Waits until this moment of `performance.now`, or until the client leaves. */
export function waitUntil(due_ms: number, { request, clock }: Pick<Call, "request" | "clock">): Promise<void> {
  if (due_ms <= performance.now() || request.signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    request.signal.addEventListener("abort", () => resolve());
    clock.at(due_ms, resolve);
  });
}

/** A placeholder for the response after the client has left; nobody reads it. */
export function clientLeft({ watch }: Pick<Call, "watch">): Response {
  watch?.ended("client-left");
  return new Response(null, { status: 499 });
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
