/**
 * The path of every inference request, whatever its protocol; the adapter has the differences. The frame that made the
 * call ends everything that begins here, however the request ends.
 */

import { Keeping } from "../../features/responses/keeping.ts";
import { claimOf, keyHeader } from "../../features/responses/key.ts";
import { replay } from "../../features/responses/replay.ts";
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
  const keeping = keepingOf(dependencies, call, input, adapter);
  return prepare(dependencies, call, input, adapter, keeping).then((prepared) =>
    "earlier" in prepared
      ? replay(dependencies, call, { principal, ...prepared }, adapter)
      : run(dependencies, call, { principal, prepared, keeping }, adapter),
  );
}

/** Null if the answer is not kept, as for most requests. */
function keepingOf<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  { principal, body, headers }: InferenceInput<Wire>,
  { operation, background }: Adapter<Wire, Reply>,
): Keeping | null {
  const isBackground = background?.isAsked(body.value) ?? false;
  const key = headers?.[keyHeader];
  const isRepeatable = key !== undefined && body.digest !== null;
  if (!isBackground && !isRepeatable) return null;
  const claim = isRepeatable ? { key: claimOf(principal, operation, key), body: body.digest! } : null;
  const keptAs = { claim, isBackground, isStream: body.value.stream === true };
  return call.begins(new Keeping(dependencies, call, principal, keptAs));
}

async function run<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  { principal, prepared, keeping }: { principal: Principal; prepared: Prepared<Wire>; keeping: Keeping | null },
  adapter: Adapter<Wire, Reply>,
): Promise<Answer> {
  // An answer that is kept goes on without its client.
  if (!keeping) call.watchClient();
  const standing = call.begins(dependencies.standings.begin(principal, (fault) => call.end(fault)));
  const planNow = () => planOf(dependencies.catalog().plans, standing.principal.organization) ?? prepared.plan;
  const kept = { isRepeatable: keeping?.isRepeatable ?? false, fetched: keeping?.fetched ?? null };
  const running = call.begins(await dependencies.runs.start({ ...prepared, planNow, ...kept }, call));
  keeping?.follows(running);
  return answer(dependencies, call, adapter, prepared, { run: running, keeping });
}
