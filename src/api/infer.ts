/** THE SPINE: one function is the whole of an inference request, for every protocol. What differs is in the adapter. */
import { planOf } from "../admission/allowance.ts";
import type { Principal } from "../auth/verdict.ts";
import type { Call } from "../http/call.ts";
import type { Run } from "../usage/run.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";
import { answer } from "./answer.ts";
import type { Dependencies } from "./dependencies.ts";
import { type InferenceInput, type Prepared, prepare } from "./prepare.ts";

/** What a function that waits was given stays in memory until it ends: the body as it was parsed must not. */
export function infer<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  input: InferenceInput<Wire>,
  adapter: Adapter<Wire, Reply>,
): Promise<Response> {
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
): Promise<Response> {
  call.watchClient();
  const standing = dependencies.standings.begin(principal, (fault) => call.end(fault));
  let running: Run | null = null;
  /** Once: by the stream that is the answer, or else here. */
  const ended = async () => {
    try {
      await running?.[Symbol.asyncDispose]();
    } finally {
      standing[Symbol.dispose]();
    }
  };
  try {
    const planNow = () => planOf(dependencies.catalog().plans, standing.principal.organization) ?? prepared.plan;
    running = await dependencies.runs.start({ ...prepared, planNow }, call);
    return await answer(dependencies, call, adapter, prepared, running, ended);
  } finally {
    if (!call.streaming) await ended();
  }
}
