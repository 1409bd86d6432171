// Runs one request of a history (a simulated run): a simulated engine and a reader around a run of the product
// (src/core/usage/run.ts).

import type { Settlement } from "../../src/core/admission/reservation.ts";
import type { InferenceEvent } from "../../src/core/inference/event.ts";
import { asFault, Fault } from "../../src/core/inference/fault.ts";
import { noUsage } from "../../src/core/inference/usage.ts";
import { compact } from "../../src/core/protocol/json.ts";
import type { CatalogModel } from "../../src/core/routing/catalog.ts";
import type { Plan } from "../../src/core/store/plan.ts";
import { Cancellation, type Signal } from "../../src/core/time/cancellation.ts";
import { defaultTimeouts } from "../../src/core/upstream/target.ts";
import { engineRequestOf } from "../../src/core/usage/attempt-request.ts";
import { finishing, type Signals } from "../../src/core/usage/departure.ts";
import { codeUnitsOf } from "../../src/core/usage/forwarded.ts";
import type { OutputCalibration } from "../../src/core/usage/output-calibration.ts";
import { type Caller, type EngineProgress, initialProgress, type RunRequest } from "../../src/core/usage/record.ts";
import { type Run, runs } from "../../src/core/usage/run.ts";
import type { Account } from "./account.ts";
import { keyIdOf } from "./budgets.ts";
import type { Judge } from "./judge.ts";
import type { KeptRun } from "./kept-client.ts";
import { modelIdOf } from "./models.ts";
import type { Node } from "./node.ts";
import { principalOf } from "./office.ts";
import { isWithoutOutput, passedRequestOf, wholeTokens_max, within } from "./passed.ts";
import { personOf } from "./people.ts";
import { prices } from "./prices.ts";
import type { OrganizationPlan, RequestPlan } from "./scenario.ts";
import type { World } from "./world.ts";

/** The model of a request: one whose engine reports usage, or one whose engine never does. */
function modelOf(plan: RequestPlan): CatalogModel {
  return {
    id: modelIdOf(plan),
    ownedBy: "acme",
    created: 0,
    contextTokens: 100_000,
    outputTokens_max: 16_384,
    capabilities: new Set(),
    prices,
    extraParams: [],
    routes: [],
  };
}

/** A stand-in for the catalog's engine, because the simulated engine is not asked over a network. */
const nowhere: EngineProgress = {
  ...initialProgress(),
  route: {
    upstream: { name: "history", url: "", protocol: "openai-chat", apiKey: null, timeouts: defaultTimeouts },
    model: "",
    priority: 0,
    weight: 1,
  },
  attempts: 1,
  isFinal: true,
};

const code_units_per_token = 4;
/** Counts output exactly, whatever the deltas: learning a calibration is not tested by these histories. */
const calibration: OutputCalibration = {
  of: () => ({
    tokens: ({ streamed, whole }) => (codeUnitsOf(streamed) + codeUnitsOf(whole)) / code_units_per_token,
    reported() {},
    observe() {},
    observeCount() {},
    missed() {},
    isReporting: true,
  }),
  sums: { recall() {}, changes: () => new Map(), unwritten() {} },
};
const longText = "x".repeat(code_units_per_token * wholeTokens_max);

function runRequestOf(node: Node, plan: RequestPlan, organization: OrganizationPlan): RunRequest {
  const model = modelOf(plan);
  return {
    requestId: plan.id,
    principal: {
      key: { id: keyIdOf(plan.id) },
      organization: { id: organization.id },
      person: { id: personOf(keyIdOf(plan.id)) },
    },
    operation: plan.passed?.operation ?? "chat.completions",
    request: {
      model: model.id,
      stream: plan.stream,
      turns: [],
      tools: [],
      sampling: {},
      stop: [],
      extra: {},
      needs: [],
      ...compact({ outputTokens_max: plan.outputTokens_max }),
      ...passedRequestOf(plan),
    },
    model,
    plan: node.knows.plan(organization.id),
    inputTokens: plan.inputTokensEstimate,
    inputTokensExpected: plan.inputTokensEstimate,
    media: { bytes: 0, tokens: 0 },
    inputBytes: plan.inputTokensEstimate,
    outputTokensAllowed: model.outputTokens_max,
    identity: { responseId: plan.id, createdAtSeconds: 0, model: model.id },
    session: null,
  };
}

function followed({ defects }: World, planNow: () => Plan): (() => Plan) | undefined {
  if (defects.keepsPlan) return undefined;
  const same = { ...planNow() };
  return defects.hidesChange ? () => Object.assign(same, planNow()) : planNow;
}

/** Runs one request. `kept` is the stored run of a request with an idempotency key; null without a key. */
export async function request(
  world: World,
  judge: Judge,
  node: Node,
  plan: RequestPlan,
  kept: KeptRun | null = null,
): Promise<void> {
  const organization = world.scenario.organizations[plan.organization]!;
  if (world.office.revokedAt_ms(organization.id) !== null) return;
  const call = new Cancellation();
  const halted = new Cancellation();
  const account = judge.asked(plan, node);
  let left = false;
  let run = null as Run | null;
  node.open += 1;
  if (plan.leaves_ms !== null) node.clock.arrive(plan.leaves_ms, leave);

  function leave(): void {
    if (account.over) return;
    world.tell(() => `the client of ${plan.id} leaves`);
    kept?.leave();
    if (!kept || world.defects.isNeverDetached) endWithClient();
  }

  function endWithClient(): void {
    if (left || account.over) return;
    left = true;
    account.leftAt_ms = world.time.now_ms;
    call.abort(new Fault("internal_error", "The client closed the connection."));
    // Only a stream's run is ended here. An answer that is not streamed is collected, and the collector waits for the
    // run's end.
    if (plan.stream) void run?.[Symbol.asyncDispose]();
  }

  const caller: Caller = {
    signal: call,
    get left() {
      return left;
    },
    halted,
    end(fault) {
      halted.abort(fault);
      call.abort(fault);
    },
    elapsed_ms: () => 0,
    keepsText: () => true,
    granted() {},
    ended(ending) {
      kept?.ended(ending);
      judge.ended(account, ending, kept && { isLeft: kept.hasLeft, isKept: kept.keeping.goesOn });
    },
  };
  const running = runs({
    admission: {
      async enter(entry, admitting) {
        const reservation = await node.admission.enter(entry, admitting);
        judge.admitted(account);
        const { grant, isSlight, rates, signal } = reservation;
        signal.listen(() => judge.lost(account));
        return {
          ...{ grant, isSlight, rates, signal },
          permits: (tokens) => reservation.permits(tokens),
          stoppingLimit: () => reservation.stoppingLimit(),
          progress: (...usage) => reservation.progress(...usage),
          restart: () => reservation.restart(),
          assertHeld: () => reservation.assertHeld(),
          settle,
        };

        function settle(settlement: Settlement): Promise<void> {
          const confirmed = reservation.settle(settlement);
          void confirmed.then(() => {
            node.open -= 1;
            judge.settled(account);
          });
          return confirmed;
        }
      },
    },
    inputEstimate: { observe() {} },
    tokenizing: () => null,
    // An exact calibration, because an engine that sends one token a delta would mislead the count for another engine.
    outputCalibration: calibration,
    watcher: { granted() {}, ended() {} },
    open(asked) {
      if (account.admittedAt_ms === null) judge.counts["engines asked before the grant"] += 1;
      const progress = {
        ...nowhere,
        get isAtEngine() {
          return account.engineAsked;
        },
      };
      const { wholeTokens } = engineRequestOf(asked, { unstreamed_tokens_max: 0 });
      return { progress, events: engines(node, within(plan, wholeTokens), asked, account, judge) };
    },
  });
  using _standing = node.knows.standings?.begin(principalOf(organization), caller.end);
  try {
    const asked = runRequestOf(node, plan, organization);
    const planNow = followed(world, () => node.knows.plan(organization.id));
    run = await running.start({ ...asked, isRepeatable: kept !== null }, caller, planNow);
  } catch (thrown) {
    node.open -= 1;
    judge.refused(account, asFault(thrown));
    return;
  }
  const { events } = run;
  kept?.keeping.follows(run);
  if (kept && !(await opened(kept, judge, node, plan))) return run[Symbol.asyncDispose]();
  for (;;) {
    const next = await events.next();
    if (next.done) break;
    judge.forwards(account, next.value);
    const leaves = plan.stream ? "part-delta" : "response-end";
    if (next.value.some(({ type }) => type === leaves)) world.in(plan.write_ms, () => judge.written(account));
    await kept?.writes(account, next.value);
    // A run whose answer can no longer be kept ends when its client leaves.
    if (kept?.hasLeft && !kept.keeping.goesOn) endWithClient();
  }
  await kept?.keeping.end();
  if (!plan.stream) await run[Symbol.asyncDispose]();
}

/**
 * Opens the log, or the background response, before any part of the answer is read. Returns false if that was refused.
 */
async function opened(kept: KeptRun, judge: Judge, node: Node, plan: RequestPlan): Promise<boolean> {
  try {
    await kept.begins();
    return true;
  } catch (thrown) {
    const account = judge.accounts.get(plan.id)!;
    account.hasNoLog = true;
    judge.refusedToRepeat({ plan, node, at_ms: account.askedAt_ms }, asFault(thrown));
    return false;
  }
}

/**
 * Tries the engines as `Attempts` does (src/core/usage/attempts.ts): if one breaks off an unstreamed answer, another
 * engine is asked.
 */
async function* engines(
  node: Node,
  plan: RequestPlan,
  signals: Signals,
  account: Account,
  judge: Judge,
): AsyncGenerator<InferenceEvent[], void, void> {
  const { signal } = signals;
  const finish = plan.engine === "whole" ? finishing(signals, node.clock, () => true) : null;
  const answers = [{ ...plan, again: null }, ...(plan.again ? [{ ...plan, parts: plan.again, breaksOff: false }] : [])];
  try {
    for (const [index, answer] of answers.entries()) {
      account.engineAsked = !signal.aborted;
      if (signal.aborted) return yield [{ type: "response-failed", fault: asFault(signal.reason) }];
      let isBroken = false;
      for await (const batch of engine(node, answer, finish?.signal ?? signal, account)) {
        isBroken = batch.some((event) => event.type === "response-failed" && event.fault === brokeOff);
        const isBegunAnew = isBroken && !signal.aborted && index < answers.length - 1;
        if (isBroken && !plan.stream) {
          judge.broke(account, isBegunAnew);
          account.engineAsked = false;
        }
        yield isBegunAnew ? [{ ...begun, responseId: plan.id }] : batch;
        if (!isBegunAnew && isBroken) return;
      }
      if (!isBroken) return;
    }
  } finally {
    finish?.stop();
  }
}

const begun = { type: "response-start", model: "acme/writer-1", createdAtSeconds: 0 } as const;
const brokeOff = new Fault("upstream_unavailable", "The engine broke off.");

/**
 * The events of one engine's answer. The request's account notes which events are reports, and the tokens of each
 * delta.
 */
async function* engine(
  node: Node,
  plan: RequestPlan,
  signal: Signal,
  account: Pick<Account, "tokensOf" | "reports">,
): AsyncGenerator<InferenceEvent[], void, void> {
  const { tokensOf, reports } = account;
  let produced = 0;
  const piece = (tokens: number): InferenceEvent => {
    if (tokens === 0) return { type: "passed", bytes: new Uint8Array(1) };
    const event = { type: "part-delta", index: 0, delta: longText.slice(0, code_units_per_token * tokens) } as const;
    produced += tokens;
    tokensOf.set(event, produced);
    return event;
  };
  let told = 0;
  /**
   * Makes the engine's report that follows the event `before`. A report with an implausible output still counts for its
   * input; one with an implausible input does not count at all.
   */
  const reported = (before: InferenceEvent): InferenceEvent => {
    const event = reportOf(plan, produced, told++);
    if (plan.lie !== "input") reports.add(event).add(before);
    return event;
  };
  try {
    const last = plan.parts.length - 1;
    for (const [index, { wait_ms, tokens }] of plan.parts.entries()) {
      await sleep(node, wait_ms, signal);
      if (plan.engine === "whole" && plan.breaksOff) throw brokeOff;
      const batch: InferenceEvent[] = [];
      if (index === 0) batch.push({ type: "part-start", index: 0, part: { kind: "text" } });
      // One read may bring several deltas, of which a window may have room only for the first.
      const half = tokens > 1 && index % 3 === 0 ? tokens >> 1 : 0;
      if (half > 0) batch.push(piece(half));
      batch.push(piece(tokens - half));
      const ends = plan.engine === "whole" && index === last;
      if (ends) batch.push({ type: "part-end", index: 0 });
      if (plan.engine !== "silent" && (ends || !isWithoutOutput(plan))) batch.push(reported(batch.at(-1)!));
      if (ends) batch.push({ type: "response-end", reason: "stop" });
      yield batch;
      if (ends) return;
    }
    await sleep(node, plan.ends_ms, signal);
    if (plan.breaksOff) throw brokeOff;
    const end: InferenceEvent[] = plan.parts.length > 0 ? [{ type: "part-end", index: 0 }] : [];
    const over: InferenceEvent = { type: "response-end", reason: "stop" };
    if (plan.engine !== "silent") end.push(reported(over));
    yield [...end, over];
  } catch (thrown) {
    yield [{ type: "response-failed", fault: asFault(thrown) }];
  }
}

/** The report, honest or not, of an engine that has already sent `told` reports. */
function reportOf({ inputTokens, lie }: RequestPlan, produced: number, told: number): InferenceEvent {
  const usage = { ...noUsage, inputTokens, outputTokens: produced, source: "reported" as const };
  switch (lie) {
    case null:
      return { type: "usage", usage };
    case "more":
      return { type: "usage", usage: { ...usage, outputTokens: 1e9 + told } };
    case "none":
      return { type: "usage", usage: { ...usage, outputTokens: 0 } };
    case "less":
      return {
        type: "usage",
        usage: { ...usage, outputTokens: told === 0 ? produced : Math.max(0, produced - told * 1e6) },
      };
    case "half":
      return { type: "usage", usage: { ...usage, outputTokens: 0 }, rejected: { output: "missing", said: {} } };
    case "input":
      return { type: "usage", usage: { ...usage, inputTokens: 1e9 } };
  }
}

/** Waits until this much time has passed while the node runs; rejects when the signal is aborted. */
function sleep(node: Node, for_ms: number, signal: Signal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const listening = signal.listen(reject);
  node.clock.arrive(for_ms, () => {
    listening.stop();
    resolve();
  });
  return promise;
}
