/** Wires the runs of requests over the engines: what is measured and logged about each attempt and each end. */

import type { Admission } from "../core/admission/admission.ts";
import type { Log } from "../core/http/log.ts";
import type { AnswerPart } from "../core/inference/event.ts";
import { retryBudgets } from "../core/routing/after.ts";
import { engineOf } from "../core/routing/choose.ts";
import type { Share } from "../core/routing/fair-queue.ts";
import { idleClock } from "../core/time/clock.ts";
import { LesserDialects } from "../core/usage/attempt-request.ts";
import { Attempts, type AttemptsParts } from "../core/usage/attempts.ts";
import type { InputEstimate } from "../core/usage/input-estimate.ts";
import type { OutputCalibration } from "../core/usage/output-calibration.ts";
import type { Attempted, RunRequest } from "../core/usage/record.ts";
import { type Runs, runs } from "../core/usage/run.ts";
import type { Tokenizing } from "../core/usage/tally.ts";
import type { Traces } from "../core/usage/traces.ts";
import { WholeAnswers } from "../core/usage/whole-answers.ts";
import type { Open } from "../features/continuation/asking-again.ts";
import { Compacting } from "../features/continuation/compacting.ts";
import { Continuing, mayGoOn } from "../features/continuation/continuing.ts";
import type { Metrics } from "../features/telemetry/metrics.ts";
import type { CountingWorkers } from "../features/tokenizers/counter.ts";
import {
  answerCount,
  type CountAnswer,
  hasTokenizer,
  isCountable,
  promptCount,
} from "../features/tokenizers/prompt-count.ts";
import type { Engines } from "./engines.ts";
import { lossLog } from "./loss-log.ts";
import { seldom } from "./seldom.ts";

interface InferenceDependencies {
  admission: Admission;
  counter: Pick<CountingWorkers, "examine">;
  inputEstimate: InputEstimate;
  outputCalibration: OutputCalibration;
  engines: Engines;
  /** The weight and the priority of each plan, by the plan's name, for requests that wait for engines. */
  shares(): ReadonlyMap<string, Share>;
  metering: AttemptsParts["settings"];
  metrics: Metrics;
  traces: Pick<Traces, "inference"> | null;
  log: Log;
  /** Called when an engine did not know a model by its name. */
  unknownModel(): void;
}

export function inferenceRuns(parts: InferenceDependencies): Runs {
  const { admission, counter, inputEstimate, outputCalibration, engines, metrics, traces, log } = parts;
  const attempted = attemptRecord(parts, seldom(hour_ms, idleClock()));
  const attemptsParts: AttemptsParts = {
    ...engines,
    budget: retryBudgets(),
    now_ms: () => performance.now(),
    clock: idleClock(),
    draw: Math.random,
    shareOf: (plan) => parts.shares().get(plan) ?? { weight: 1, priority: 0 },
    attempted(attempt) {
      engines.tallies.ended(attempt.route.upstream, attempt.end.kind);
      attempted(attempt);
    },
    lost: lossLog(parts, () => performance.now()),
    lesser: new LesserDialects(),
    wholeAnswers: new WholeAnswers(),
    waited: metrics.waited,
    firstPart: (route, ms) => metrics.firstPart(route.upstream.name, ms / 1000),
    settings: parts.metering,
  };
  const open: Open = (attemptRequest, progress) => new Attempts(attemptsParts, attemptRequest, progress);
  return runs({
    admission,
    inputEstimate,
    tokenizing: tokenizingBy(counter),
    outputCalibration,
    watcher: {
      granted: (source) => metrics.decision("granted", source),
      ended(ended) {
        metrics.inference(ended, ended.traceId);
        traces?.inference(ended);
        const { requestId, model, reportRejected } = ended;
        // The line does not name the engine; `sluice request show` does.
        if (reportRejected) log.event("warn", "report_rejected", { request_id: requestId, model, ...reportRejected });
      },
    },
    open(attemptRequest) {
      if (attemptRequest.asked.request.compaction) return new Compacting(open, attemptRequest);
      return mayGoOn(attemptRequest.asked) ? new Continuing(open, attemptRequest) : open(attemptRequest);
    },
  });
}

function tokenizingBy(counter: Pick<CountingWorkers, "examine">): (request: RunRequest) => Tokenizing | null {
  const countPrompt = promptCount(counter);
  const countAnswer = answerCount(counter);
  return (request) => {
    const { passed } = request.request;
    if (passed) return tokenizingPassed(request, countAnswer);
    if (!hasTokenizer(request.model)) return null;
    return {
      hasPrompt: isCountable(request),
      prompt: () => countPrompt(request),
      answer: (parts) => countAnswer(request, parts),
    };
  };
}

/**
 * The counter of a request whose answer is passed on: token ids are counted exactly, and texts by the model's
 * tokenizer, without a chat template.
 */
function tokenizingPassed(asked: RunRequest, count: CountAnswer): Tokenizing | null {
  const { model, request } = asked;
  const { exactTokens, texts, inputs } = request.passed!;
  if (exactTokens === undefined && !hasTokenizer(model)) return null;
  const counted = (parts: readonly AnswerPart[]) => count(asked, parts);
  const prompt = () => {
    if (exactTokens !== undefined) return Promise.resolve(exactTokens);
    if (!isCountable(asked)) return null;
    // No engine reads more of an input than the context: longer ones are cut, or refused.
    const tokens_max = model.contextTokens * inputs;
    return counted(texts().map((text) => ({ kind: "text", toolName: "", text }))).then(({ tokens }) =>
      Math.min(tokens, tokens_max),
    );
  };
  return { hasPrompt: exactTokens === undefined, prompt, answer: counted };
}

/** A field's name for the log. An engine may make names up, so only a text that looks like a name is shown. */
function nameShown(field: string): string {
  return /^[\w.-]{1,64}$/.test(field) ? field : "a field with another name";
}

/**
 * Records attempts. A problem that an operator has to correct is logged each time, because it costs every request an
 * attempt. An unknown finish reason, a dropped field of an answer, and the cause of a lost connection is counted each
 * time and logged once an hour.
 */
function attemptRecord(
  { metrics, log, unknownModel }: InferenceDependencies,
  isDue: (thing: string) => boolean,
): (attempt: Attempted) => void {
  return ({ model, route, end }) => {
    const { name: upstream, address: replica } = route.upstream;
    metrics.attempt(upstream, end.kind);
    const where = { upstream, ...(replica ? { replica } : {}), model };
    if (end.unread) log.event("warn", "upstream_unreadable", { ...where, reason: end.unread });
    if (end.kind === "refused") log.event("error", "upstream_refused", { ...where, status: end.status });
    if (end.kind === "refused" && end.status === 404) unknownModel();
    const { unknownReason: word, leftOut, lost } = end;
    if (lost && isDue(`${engineOf(route.upstream)} ${end.kind} ${lost}`))
      log.event("warn", "upstream_lost", { ...where, outcome: end.kind, cause: lost });
    if (leftOut && isDue(`${upstream} ${route.model} ${leftOut.toSorted()}`))
      log.event("warn", "answer_part_left_out", { ...where, fields: leftOut.map(nameShown) });
    if (word === undefined) return;
    metrics.unknownReason(upstream);
    if (isDue(`${upstream} ${word}`)) log.event("warn", "upstream_reason_unknown", { ...where, word });
  };
}
const hour_ms = 3_600_000;
