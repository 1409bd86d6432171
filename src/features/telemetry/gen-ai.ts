/**
 * The GenAI semantic conventions, as of open-telemetry/semantic-conventions-genai at commit
 * 004902b8cb70aa5ae6ca4ae07132b7daabcd3e10. Names, units and buckets are taken from there.
 */

import type { Attributes, Meter } from "@opentelemetry/api";
import type { StopReason } from "../../core/inference/event.ts";
import { promptTokens, type Usage } from "../../core/inference/usage.ts";
import type { Operation } from "../../core/store/ledger.ts";
import type { EngineReport } from "../../core/upstream/attempt.ts";
import type { UpstreamProtocol } from "../../core/upstream/codecs.ts";
import type { Ended } from "../../core/usage/record.ts";
import { perOutputToken_s } from "./metrics.ts";

const tokens = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864];
const duration_s = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const perToken_s = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
const firstToken_s = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

/** The provider names of engines by protocol, since nothing else is known about an engine's maker. */
export const providers: Record<UpstreamProtocol, string> = {
  "openai-chat": "openai",
  "openai-responses": "openai",
  "anthropic-messages": "anthropic",
};
/** The provider name of this service, which is not a standard one. */
const provider = "sluice";

export function genAiMetrics(meter: Meter): (ended: Ended) => void {
  const histogram = (name: string, unit: string, explicitBucketBoundaries: number[]) =>
    meter.createHistogram(name, { unit, advice: { explicitBucketBoundaries } });
  const requestDuration = histogram("gen_ai.server.request.duration", "s", duration_s);
  const firstToken = histogram("gen_ai.server.time_to_first_token", "s", firstToken_s);
  const perOutputToken = histogram("gen_ai.server.time_per_output_token", "s", perToken_s);
  const usage = histogram("gen_ai.client.token.usage", "{token}", tokens);
  return (ended) => {
    const attributes = modelAttributes(ended.model, ended.operation);
    const failure = ended.errorCode === null ? {} : { "error.type": ended.errorCode };
    requestDuration.record(ended.total_ms / 1000, { ...attributes, ...failure });
    if (ended.firstPart_ms !== null && ended.errorCode === null)
      firstToken.record(ended.firstPart_ms / 1000, attributes);
    const each_s = perOutputToken_s(ended);
    if (each_s !== null) perOutputToken.record(each_s, attributes);
    usage.record(promptTokens(ended.usage), { ...attributes, "gen_ai.token.type": "input" });
    usage.record(ended.usage.outputTokens, { ...attributes, "gen_ai.token.type": "output" });
  };
}

/**
 * The conventions' names of operations. They have none for ranking yet: `rerank` is proposed there (issue 253), and
 * used by OpenTelemetry's own eBPF instrumentation.
 */
const operationNames: Partial<Record<Operation, string>> = {
  embeddings: "embeddings",
  rerank: "rerank",
  completions: "text_completion",
};

export function operationName(operation: Operation): string {
  return operationNames[operation] ?? "chat";
}

export function modelAttributes(model: string, operation: Operation): Attributes {
  return {
    "gen_ai.operation.name": operationName(operation),
    "gen_ai.provider.name": provider,
    "gen_ai.request.model": model,
    "gen_ai.response.model": model,
  };
}

export function runAttributes(ended: Ended): Attributes {
  const { usage, stream, firstPart_ms } = ended;
  return {
    ...modelAttributes(ended.model, ended.operation),
    "gen_ai.request.stream": stream,
    ...usageAttributes(usage),
    ...(stream && firstPart_ms !== null ? { "gen_ai.response.time_to_first_chunk": firstPart_ms / 1000 } : {}),
    "sluice.outcome": ended.outcome,
    "sluice.usage.source": usage.source,
  };
}

/** The engine's own report of an attempt, which may differ from what is charged. */
export function reportAttributes({ usage, reason }: EngineReport): Attributes {
  return {
    ...(usage === null ? {} : usageAttributes(usage)),
    ...(reason === null ? {} : { "gen_ai.response.finish_reasons": [reason] satisfies StopReason[] }),
  };
}

export function serverAttributes(engineUrl: string): Attributes {
  const { hostname, port, protocol } = new URL(engineUrl);
  return {
    "server.address": hostname.replace(/^\[|\]$/g, ""),
    "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
  };
}

function usageAttributes(usage: Usage): Attributes {
  return {
    "gen_ai.usage.input_tokens": promptTokens(usage),
    "gen_ai.usage.cache_read.input_tokens": usage.cachedInputTokens,
    "gen_ai.usage.cache_creation.input_tokens": usage.cacheWriteTokens,
    "gen_ai.usage.output_tokens": usage.outputTokens,
    "gen_ai.usage.reasoning.output_tokens": usage.reasoningTokens,
  };
}
