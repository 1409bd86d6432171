/** THE SPINE: one function is the whole of an inference request, for every protocol. What differs is in the adapter. */
import { planOf } from "../admission/allowance.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";
import { answer } from "./answer.ts";
import type { Call } from "./call.ts";
import type { Dependencies } from "./dependencies.ts";
import { type InferenceInput, prepare } from "./prepare.ts";

export async function infer<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  input: InferenceInput<Wire>,
  adapter: Adapter<Wire, Reply>,
): Promise<Response> {
  const prepared = await prepare(dependencies, call, input, adapter);
  call.watchClient();
  await using owner = new AsyncDisposableStack();
  const standing = owner.use(dependencies.standings.begin(input.principal, (fault) => call.end(fault)));
  const planNow = () => planOf(dependencies.catalog().plans, standing.principal.organization) ?? prepared.plan;
  const run = owner.use(await dependencies.runs.start({ ...prepared, planNow }, call));
  return await answer(dependencies, call, adapter, prepared, run, owner);
}
