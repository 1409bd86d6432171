// Fixtures for tests of attempts to get an answer from engines: timeouts for an engine that has no spare, the
// components that attempts need, and records of requests.

import type { InferenceRequest } from "../../src/core/inference/request.ts";
import { retryBudgets } from "../../src/core/routing/after.ts";
import type { CatalogModel } from "../../src/core/routing/catalog.ts";
import { pool } from "../../src/core/routing/choose.ts";
import { health } from "../../src/core/routing/health.ts";
import { queues } from "../../src/core/routing/queues.ts";
import { replicas } from "../../src/core/routing/replicas.ts";
import { noLimits } from "../../src/core/store/plan.ts";
import { idleClock } from "../../src/core/time/clock.ts";
import type { Patience } from "../../src/core/upstream/ask.ts";
import { client } from "../../src/core/upstream/http1/client.ts";
import { defaultTimeouts, silences, type UpstreamTimeouts } from "../../src/core/upstream/target.ts";
import { LesserDialects } from "../../src/core/usage/attempt-request.ts";
import type { AttemptsParts } from "../../src/core/usage/attempts.ts";
import type { RunRequest } from "../../src/core/usage/record.ts";
import { WholeAnswers } from "../../src/core/usage/whole-answers.ts";

export function patience(timeouts: Partial<UpstreamTimeouts> = {}): Patience {
  const all = { ...defaultTimeouts, ...timeouts };
  const { connect_ms, first_part_ms, total_ms } = all;
  return { connect_ms, first_part_ms, ...silences(all, false), total_ms, spare: null };
}

/** The components that attempts need, new for each call. */
export function attemptsParts(more: Partial<AttemptsParts> = {}): AttemptsParts {
  return {
    client: client(),
    budget: retryBudgets(),
    replicas: replicas(() => []),
    health: health(),
    pool: pool(),
    queues: queues(() => performance.now()),
    shareOf: () => ({ weight: 1, priority: 0 }),
    now_ms: () => performance.now(),
    late_ms: () => 0,
    clock: idleClock(),
    draw: Math.random,
    attempted() {},
    waited() {},
    lost() {},
    lesser: new LesserDialects(),
    wholeAnswers: new WholeAnswers(),
    firstPart() {},
    settings: () => ({ unstreamed_tokens_max: 512 }),
    ...more,
  };
}

/** The record of a request to this model, by a caller without limits. */
export function recordOf(
  model: CatalogModel,
  request: InferenceRequest,
  more: Partial<RunRequest> & { organizationId?: string } = {},
): RunRequest {
  const { organizationId = "o", ...record } = more;
  return {
    requestId: "req_1",
    principal: { key: { id: "key_1" }, organization: { id: organizationId } },
    operation: "chat.completions",
    plan: { ...noLimits, name: "pro" },
    model,
    request,
    identity: { responseId: "r", createdAtSeconds: 1, model: model.id },
    session: null,
    inputBytes: 40,
    inputTokens: 10,
    inputTokensExpected: 10,
    media: { bytes: 0, tokens: 0 },
    outputTokensAllowed: model.outputTokens_max,
    ...record,
  };
}
