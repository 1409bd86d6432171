/** POST /v1/chat/completions: a request read, answered, and sent at its pace with the faults it asked for. */
import { type Act, streamActs, wholeActs } from "./acts.ts";
import { answerTo } from "./answer.ts";
import type { ChunkOptions } from "./chunks.ts";
import type { Clock } from "./clock.ts";
import { completion } from "./completion.ts";
import { readConversation } from "./conversation.ts";
import { type Cues, readCues } from "./directives.ts";
import { faultResponse } from "./errors.ts";
import type { RequestLog, SimulatorRequest } from "./log.ts";
import type { Answer } from "./parts.ts";
import { dueAt, madeBy, type Pace, playing } from "./play.ts";
import { Refusal } from "./refusal.ts";
import { type ChatRequest, readRequest } from "./request.ts";

export interface ChatOptions {
  /** To the first token; 0 unless set. */
  ttft_ms?: number;
  /** 0, as fast as possible, unless set. */
  tokens_per_second?: number;
  /** Directives for every request, as they stand in brackets; a request's own come after them. */
  directives?: string;
  /** Whether answers name the model that was asked for; yes unless set. */
  namesModel?: boolean;
}

/** One request under way. */
interface Call {
  request: Request;
  clock: Clock;
  log: RequestLog;
  entry: SimulatorRequest;
  cues: Cues;
  pace: Pace;
}

/** Throws a Refusal for what cannot be answered. */
export async function chat(
  request: Request,
  options: ChatOptions,
  clock: Clock,
  log: RequestLog,
  entry: SimulatorRequest,
): Promise<Response> {
  const start_ms = performance.now();
  const text = await request.text();
  const body = parsed(text);
  log.keepBody(entry, body ?? text, text.length);
  if (body === undefined) throw new Refusal(400, "Simulator: the body is not JSON.", "invalid_json");
  const asked = readRequest(body);
  const conversation = readConversation(asked);
  const cues = readCues(options.directives ?? "", request.headers.get("x-simulator") ?? "", conversation.directives);
  const pace: Pace = {
    start_ms,
    first_ms: cues.numbers.ttft ?? options.ttft_ms ?? 0,
    tokens_per_second: cues.numbers.tps ?? options.tokens_per_second ?? 0,
  };
  const call: Call = { request, clock, log, entry, cues, pace };
  await waited(start_ms + (cues.numbers["slow-headers"] ?? 0), call);
  if (request.signal.aborted) return left(call);
  const fault = faultResponse(cues, asked.stream, conversation.prompt_tokens);
  if (fault) {
    log.end(entry, "complete");
    return fault;
  }
  const says = `This is the Sluice simulator${options.namesModel === false ? "" : ` answering as “${asked.model}”`}.`;
  const answer = answerTo(asked, conversation, cues, says);
  const shape = shapeOf(asked, cues, conversation.seed);
  return asked.stream ? streamed(call, answer, shape) : whole(call, answer, shape);
}

function shapeOf(asked: ChatRequest, cues: Cues, seed: number): ChunkOptions {
  const hasUsage = !cues.flags.has("no-usage");
  return {
    id: `chatcmpl-sim${seed.toString(16).padStart(8, "0")}`,
    model: asked.model,
    created_s: Math.floor(Date.now() / 1000),
    includeUsage: asked.includeUsage && hasUsage,
    runningUsage: asked.runningUsage && hasUsage,
    topLogprobs: asked.topLogprobs,
    tokensPerChunk: cues.numbers["per-chunk"] ?? 1,
    quirks: cues.quirks,
    finishes: !cues.flags.has("no-finish"),
  };
}

function streamed(call: Call, answer: Answer, shape: ChunkOptions): Response {
  const { cues, pace } = call;
  const holdsBack = pace.first_ms > 0 || cues.flags.has("stall") || cues.numbers["stall-after"] === 0;
  return played(call, streamActs(answer, shape, cues, holdsBack), "text/event-stream; charset=utf-8");
}

async function whole(call: Call, answer: Answer, shape: ChunkOptions): Promise<Response> {
  const { cues, pace, entry, log, request } = call;
  const text = JSON.stringify(completion(answer, shape, !cues.flags.has("no-usage")));
  const faults = ["stall", "stall-after", "cut-after", "malformed-after"] as const;
  if (faults.some((fault) => cues.flags.has(fault))) {
    return played(call, wholeActs(text, answer, cues), "application/json");
  }
  const total = answer.usage.completion_tokens;
  await waited(dueAt(pace, total), call);
  entry.tokens = madeBy(pace, performance.now(), total);
  if (request.signal.aborted) return left(call);
  log.end(entry, "complete");
  return new Response(text, { headers: headers(cues, "application/json") });
}

function played({ cues, pace, clock, entry, log }: Call, acts: Iterator<Act>, contentType: string): Response {
  const listener = {
    wrote: (tokens: number) => {
      entry.tokens += tokens;
    },
    ended: (how: "complete" | "client-left" | "cut") => log.end(entry, how),
  };
  return new Response(playing(acts, pace, clock, listener), { headers: headers(cues, contentType) });
}

function headers(cues: Cues, contentType: string): Record<string, string> {
  return {
    "content-type": cues.flags.has("wrong-content-type") ? "text/plain" : contentType,
    "cache-control": "no-cache",
  };
}

/** Until this moment, or until the client leaves. */
function waited(due_ms: number, { request, clock }: Pick<Call, "request" | "clock">): Promise<void> {
  if (due_ms <= performance.now() || request.signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    request.signal.addEventListener("abort", () => resolve());
    clock.at(due_ms, resolve);
  });
}

/** Nobody reads it. */
function left({ entry, log }: Call): Response {
  log.end(entry, "client-left");
  return new Response(null, { status: 499 });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
