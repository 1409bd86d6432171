/**
 * THE SPINE: one function is the whole of an inference request, for every protocol. The adapter has the differences.
 * The frame that made the call ends everything that was begun here, however the request ends.
 */
import { planOf } from "../admission/allowance.ts";
import type { Principal } from "../auth/verdict.ts";
import type { Call } from "../http/call.ts";
import type { Answer } from "../http/frame.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";
import { answer } from "./answer.ts";
import type { Dependencies } from "./dependencies.ts";
import { type InferenceInput, type Prepared, prepare } from "./prepare.ts";

/** An async function keeps its arguments in memory until it ends, so the parsed body must not be one. */
export function infer<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  input: InferenceInput<Wire>,
  adapter: Adapter<Wire, Reply>,
): Promise<Answer> {
  const { principal } = input;
  return prepare(dependencies, call, input, adapter).then((prepared) =>
    run(dependencies, call, { principal, prepared }, adapter),
  );
}

async function run<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  { principal, prepared }: { principal: Principal; prepared: Prepared<Wire> },
  adapter: Adapter<Wire, Reply>,
): Promise<Answer> {
  call.watchClient();
  const standing = call.begins(dependencies.standings.begin(principal, (fault) => call.end(fault)));
  const planNow = () => planOf(dependencies.catalog().plans, standing.principal.organization) ?? prepared.plan;
  const running = call.begins(await dependencies.runs.start({ ...prepared, planNow }, call));
  return answer(dependencies, call, adapter, prepared, running);
}
