/**
 * Asks an engine one short question (a probe request) through the product's own codecs, and collects what the engine
 * answered.
 */

import type { InferenceRequest, UserTurn } from "../../core/inference/request.ts";
import { Fold, type Result } from "../../core/inference/result.ts";
import { promptTokens } from "../../core/inference/usage.ts";
import type { Dialect } from "../../core/protocol/dialect.ts";
import { Cancellation } from "../../core/time/cancellation.ts";
import { ask, type Patience } from "../../core/upstream/ask.ts";
import type { AttemptEnd, EngineReport } from "../../core/upstream/attempt.ts";
import { readAtMost } from "../../core/upstream/body.ts";
import { type UpstreamProtocol, upstreamCodecs } from "../../core/upstream/codecs.ts";
import type { Client } from "../../core/upstream/http1/client.ts";
import type { Upstream } from "../../core/upstream/target.ts";
import { asked } from "../../features/probing/asked.ts";

/** The most tokens that an answer to a question may have. */
const answer_tokens_max = 64;
const page_bytes_max = 4 * 1024 * 1024;
const page_ms = 5_000;
const patience: Omit<Patience, "connect_ms"> = {
  first_part_ms: 60_000,
  idle_ms: 30_000,
  alive_ms: 30_000,
  total_ms: 90_000,
  spare: null,
};

/** The outcome of a question, a probe request to an engine. */
export interface Heard {
  /** The engine's answer; null if the engine refused, or its answer broke off. */
  result: Result | null;
  end: AttemptEnd;
  /** The prompt tokens that the engine reported; null if none. */
  promptTokens: number | null;
  outputTokens: number | null;
  /** How many batches of events had a piece of the answer. `reports`: the number of reports of usage that came. */
  batches: number;
  reports: number;
  /** Whether the engine refused a field by name, and answered when asked without the field. */
  isLess: boolean;
  took_ms: number;
}

interface Put {
  dialect?: Dialect;
  protocol?: UpstreamProtocol;
  runningUsage?: "usage" | "timings";
  /** The model to ask, if not the one that is checked. */
  model?: string;
  /** When the client leaves: at the first piece of the answer, or after this many milliseconds. */
  leave?: "first piece" | number;
}

export interface Asking {
  readonly upstream: Upstream;
  readonly dialect: Dialect;
  readonly contextTokens: number | null;
  put(request: Partial<InferenceRequest>, how?: Put): Promise<Heard>;
  /** The text of a page below the root of the engine's host; null if there is none. */
  page(path: string): Promise<string | null>;
  /** Asks a question that several checks need, but only once, and returns its answer to all of them. */
  once(name: string, put: () => Promise<Heard>): Promise<Heard>;
}

interface AskingParts {
  client: Client;
  upstream: Upstream;
  dialect: Dialect;
  model: string;
  contextTokens: number | null;
}

export function asking({ client, upstream, dialect, model, contextTokens }: AskingParts): Asking {
  const known = new Map<string, Promise<Heard>>();
  // Some services refuse a temperature for models that reason. Then no temperature is sent any more.
  let sampling: InferenceRequest["sampling"] = { temperature: 0 };

  async function put(question: Partial<InferenceRequest>, how: Put = {}): Promise<Heard> {
    const heard = await heardOf(question, how);
    const isRefused = heard.end.kind === "rejected" && /temperature/i.test(heard.end.said ?? "");
    if (!isRefused || sampling.temperature === undefined) return heard;
    sampling = {};
    return heardOf(question, how);
  }

  async function heardOf(question: Partial<InferenceRequest>, how: Put): Promise<Heard> {
    const request: InferenceRequest = {
      model: "sluice/check",
      stream: false,
      turns: [says("Say hello.")],
      tools: [],
      sampling,
      stop: [],
      extra: {},
      needs: [],
      outputTokens_max: answer_tokens_max,
      ...question,
    };
    const signal = new Cancellation();
    const leaving =
      typeof how.leave === "number" ? setTimeout(() => signal.abort("the client leaves"), how.leave) : null;
    const protocol = how.protocol ?? upstream.protocol;
    const { runningUsage: _, ...plain } = upstream;
    const begun_ms = performance.now();
    const fold = new Fold();
    const counted = { batches: 0, reports: 0, isLess: false };
    let ended: [AttemptEnd, EngineReport] = [{ kind: "abandoned" }, { usage: null, reason: null }];
    const batches = ask({
      client,
      upstream: { ...plain, protocol, ...(how.runningUsage ? { runningUsage: how.runningUsage } : {}) },
      codec: upstreamCodecs[protocol],
      request,
      model: how.model ?? model,
      stream: request.stream,
      inputBytes: 0,
      outputTokens_max: request.outputTokens_max ?? answer_tokens_max,
      dialect: how.dialect ?? dialect,
      identity: { responseId: "check", createdAtSeconds: 0, model: request.model },
      patience: { ...patience, connect_ms: upstream.timeouts.connect_ms },
      signal,
      refuses: () => {
        counted.isLess = true;
      },
      ended: (...how) => {
        ended = how;
      },
    });
    try {
      for await (const batch of batches) {
        for (const event of batch) fold.push(event);
        if (batch.some(({ type }) => type === "part-delta")) counted.batches++;
        counted.reports += batch.filter(({ type }) => type === "usage").length;
        if (how.leave === "first piece" && counted.batches > 0) break;
      }
    } finally {
      if (leaving) clearTimeout(leaving);
    }
    const [end, { usage }] = ended;
    const isReported = usage !== null && usage.source === "reported";
    return {
      result: end.kind === "answered" ? fold.result() : null,
      end,
      promptTokens: isReported ? promptTokens(usage) : null,
      outputTokens: isReported ? usage.outputTokens : null,
      ...counted,
      took_ms: performance.now() - begun_ms,
    };
  }

  return {
    upstream,
    dialect,
    contextTokens,
    put,
    page: (path) => pageOf(client, upstream, path),
    once(name, question) {
      const heard = known.get(name) ?? question();
      known.set(name, heard);
      return heard;
    },
  };
}

async function pageOf(client: Client, upstream: Upstream, path: string): Promise<string | null> {
  try {
    const reply = await asked(client, upstream, path, page_ms);
    if (reply.status === 200) return await readAtMost(reply, page_bytes_max);
    reply.drop();
  } catch {
    // A page that cannot be read counts as missing.
  }
  return null;
}

export function says(text: string): UserTurn {
  return { role: "user", parts: [{ kind: "text", text }] };
}

/** The text of an answer, without its reasoning. */
export function answerText({ result }: Heard): string {
  return (result?.parts ?? []).flatMap(({ head, text }) => (head.kind === "text" ? [text] : [])).join("");
}

export function callsOf({ result }: Heard): string[] {
  return (result?.parts ?? []).flatMap(({ head }) => (head.kind === "tool-call" ? [head.toolName] : []));
}
