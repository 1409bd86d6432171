// One request: an engine, the meter and a reader around a reservation, put together as the spine does (src/http/infer.ts).

import type { RatedReservation } from "../../src/admission/rates.ts";
import type { InferenceEvent } from "../../src/inference/event.ts";
import { asFault, Fault } from "../../src/inference/fault.ts";
import type { Model } from "../../src/inference/model.ts";
import { noUsage } from "../../src/inference/usage.ts";
import { ahead, type Opened } from "../../src/routing/open.ts";
import { outputCalibration, uncalibrated_letters_per_token } from "../../src/usage/calibration.ts";
import { metered } from "../../src/usage/meter.ts";
import { priceOf } from "../../src/usage/price.ts";
import type { Account } from "./account.ts";
import type { Judge } from "./judge.ts";
import type { Node } from "./node.ts";
import { prices } from "./prices.ts";
import type { RequestPlan } from "./scenario.ts";
import type { World } from "./world.ts";

type Batch = readonly InferenceEvent[];

/** Two models, since what engines report of one calibrates its count. */
function modelOf(plan: RequestPlan): Model {
  return {
    id: plan.engine === "silent" ? "acme/silent-1" : "acme/writer-1",
    ownedBy: "acme",
    created: 0,
    contextTokens: 100_000,
    outputTokensMax: 16_384,
    capabilities: new Set(),
    prices,
    extraParams: [],
  };
}

/** No engine of a catalog. */
const nowhere = { route: { priority: 0, weight: 1, model: "" } as unknown as Opened["route"], windowTokens: null };

/** As many letters a token as a count assumes that knows nothing of its engine, so that what is counted is what is there. */
const letters_per_token = uncalibrated_letters_per_token;
const letters = "x".repeat(letters_per_token * 3_000);

export async function request(world: World, judge: Judge, node: Node, plan: RequestPlan): Promise<void> {
  const model = modelOf(plan);
  const organization = world.scenario.organizations[plan.organization]!;
  const call = new AbortController();
  const account = judge.asked(plan, node);
  let left = false;
  let events: AsyncGenerator<Batch, void, void> | null = null;
  node.open += 1;
  if (plan.leaves_ms !== null) node.clock.arrive(plan.leaves_ms, leave);

  function leave(): void {
    if (account.over) return;
    world.tell(() => `the client of ${plan.id} leaves`);
    left = true;
    call.abort(new Fault("internal_error", "The client closed the connection."));
    events?.return().catch(() => {});
  }

  let early: Opened | null = null as Opened | null;
  let reservation: RatedReservation;
  try {
    reservation = await node.admission.enter({
      requestId: plan.id,
      principal: { key: { id: "key_1" }, organization: { id: organization.id } },
      operation: "chat.completions",
      request: {
        model: model.id,
        stream: plan.engine !== "whole",
        turns: [],
        tools: [],
        sampling: {},
        stop: [],
        extra: {},
        needs: [],
        outputTokensMax: plan.outputTokensMax,
      },
      model,
      plan: organization.plan,
      inputTokens: plan.inputTokensEstimate,
      ahead: () => {
        judge.counts["engines asked before the grant"] += 1;
        early = ahead({ ...nowhere, events: engine(node, plan, call.signal, account) });
      },
    });
  } catch (thrown) {
    call.abort(thrown);
    void early?.events.return();
    node.open -= 1;
    judge.refused(account, asFault(thrown));
    return;
  }
  judge.admitted(account);
  const { signal } = reservation;
  signal.addEventListener("abort", () => {
    judge.lost(account);
    call.abort(signal.reason);
  });
  events = metered({
    events: early?.events ?? engine(node, plan, call.signal, account),
    hold: world.defects.hold?.(reservation) ?? reservation,
    model: model.id,
    inputTokensEstimate: plan.inputTokensEstimate,
    // Of its own, so that what is counted is what is there: one engine that sends a token a delta misleads no other.
    calibration: outputCalibration(),
    callerLeft: () => left,
    settle(ending) {
      judge.ended(account, ending);
      const { usage, outcome, stoppedBy, errorCode } = ending;
      const settlement = { usage, units: priceOf(usage, prices), outcome, stoppedBy, errorCode, route: null };
      void reservation.settle(settlement).then(() => {
        node.open -= 1;
        judge.settled(account);
      });
    },
  });
  for (;;) {
    const next = await events.next();
    if (next.done) return;
    judge.forwards(account, next.value);
    if (next.value.some((event) => event.type === "part-delta")) world.in(plan.write_ms, () => judge.written(account));
  }
}

/** The account learns what each event stands for. */
async function* engine(
  node: Node,
  plan: RequestPlan,
  signal: AbortSignal,
  { tokensOf, reports }: Pick<Account, "tokensOf" | "reports">,
): AsyncGenerator<InferenceEvent[], void, void> {
  let produced = 0;
  const delta = (tokens: number): InferenceEvent => {
    const event = { type: "part-delta", index: 0, delta: letters.slice(0, letters_per_token * tokens) } as const;
    produced += tokens;
    tokensOf.set(event, produced);
    return event;
  };
  const reported = (): InferenceEvent => {
    const usage = { ...noUsage, inputTokens: plan.inputTokens, outputTokens: produced, source: "reported" } as const;
    const event = { type: "usage", usage } as const;
    reports.add(event);
    return event;
  };
  try {
    const last = plan.parts.length - 1;
    for (const [index, { wait_ms, tokens }] of plan.parts.entries()) {
      await sleep(node, wait_ms, signal);
      const batch: InferenceEvent[] = [];
      if (index === 0) batch.push({ type: "part-start", index: 0, part: { kind: "text" } });
      // One read may bring several deltas, of which a window may leave room for the first.
      const half = tokens > 1 && index % 3 === 0 ? tokens >> 1 : 0;
      if (half > 0) batch.push(delta(half));
      batch.push(delta(tokens - half));
      const ends = plan.engine === "whole" && index === last && !plan.breaksOff;
      if (ends) batch.push({ type: "part-end", index: 0 });
      if (plan.engine !== "silent") batch.push(reported());
      if (ends) batch.push({ type: "response-end", reason: "stop" });
      yield batch;
      if (ends) return;
    }
    await sleep(node, 1, signal);
    if (plan.breaksOff) throw new Fault("upstream_unavailable", "The engine broke off.");
    const end: InferenceEvent[] = produced > 0 ? [{ type: "part-end", index: 0 }] : [];
    if (plan.engine !== "silent") end.push(reported());
    yield [...end, { type: "response-end", reason: "stop" }];
  } catch (thrown) {
    yield [{ type: "response-failed", fault: asFault(thrown) }];
  }
}

/** Until so much time has passed on a node that runs; rejects when the signal says so. */
function sleep(node: Node, for_ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal.aborted) reject(signal.reason);
  const ended = () => reject(signal.reason);
  signal.addEventListener("abort", ended, { once: true });
  node.clock.arrive(for_ms, () => {
    signal.removeEventListener("abort", ended);
    resolve();
  });
  return promise;
}
