/**
 * The path of every inference request; the adapter has the differences between protocols. The code that made the call
 * (http/frame.ts) ends everything that is begun here, however the request ends.
 */

import { planOf } from "../admission/allowance.ts";
import type { Principal } from "../auth/verdict.ts";
import type { Call } from "../http/call.ts";
import type { HttpAnswer } from "../http/frame.ts";
import type { RunRequest } from "../usage/record.ts";
import type { Run } from "../usage/run.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";
import { type AnswerSink, answer, type Prepared } from "./answer.ts";
import type { Dependencies } from "./dependencies.ts";
import { type InferenceInput, prepare } from "./prepare.ts";

/**
 * Runs an inference request and returns its answer. Not async: an async function keeps its arguments, here the parsed
 * body, in memory until it ends.
 */
export function infer<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  input: InferenceInput<Wire>,
  adapter: Adapter<Wire, Reply>,
): Promise<HttpAnswer> {
  const { principal } = input;
  const sink = sinkOf(dependencies, call, input, adapter);
  return prepare(dependencies, call, input, adapter, sink).then((prepared) =>
    "earlier" in prepared
      ? prepared.earlier.answer({ principal, wire: prepared.wire }, adapter)
      : run(dependencies, call, { principal, prepared, sink }, adapter),
  );
}

/** The sink that keeps the answer; null if it is not kept, as for most requests. */
function sinkOf<Wire extends InferenceWire, Reply>(
  { sinks }: Dependencies,
  call: Call,
  { principal, body, headers }: InferenceInput<Wire>,
  { operation, background }: Adapter<Wire, Reply>,
): AnswerSink | null {
  return sinks.sinkOf(call, {
    principal,
    operation,
    headers,
    digest: body.digest,
    isBackground: background?.isAsked(body.value) ?? false,
    isStream: body.value.stream === true,
  });
}

async function run<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  { principal, prepared, sink }: { principal: Principal; prepared: Prepared<Wire>; sink: AnswerSink | null },
  adapter: Adapter<Wire, Reply>,
): Promise<HttpAnswer> {
  // A run whose answer is kept goes on if its client leaves.
  if (!sink) call.watchClient();
  const running = await startRun(dependencies, call, principal, prepared);
  sink?.follows(running);
  return answer(dependencies.limits, call, adapter, prepared, { run: running, sink });
}

/** Starts a run, which ends with the call, or as soon as the caller loses the right to it. */
export function startRun(
  { standings, catalog, runs }: Dependencies,
  call: Call,
  principal: Principal,
  request: RunRequest,
): Promise<Run> {
  const standing = call.begins(standings.begin(principal, (fault) => call.end(fault)));
  const planNow = () => planOf(catalog().plans, standing.principal.organization) ?? request.plan;
  return runs.start(request, call, planNow).then((run) => call.begins(run));
}
