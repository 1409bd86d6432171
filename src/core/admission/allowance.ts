/**
 * The rules for a request before the ledger is asked: a plan in force, a context that its input fits into, and room for
 * output; the amount of its hold, which is reserved while the request runs; and whether there is so much room that the
 * hold will surely be granted. Pure.
 */
import { noActivePlan } from "../auth/verdict.ts";
import type { Model, Prices } from "../inference/model.ts";
import { costOf, tokensFor } from "../inference/money.ts";
import { inputTooLong, withOverflow } from "../inference/overflow.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { Usage } from "../inference/usage.ts";
import type { CallerOrganization } from "../store/directory.ts";
import { nanos_max, type SubjectReading, type WindowReadings, windowKinds } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";

/** The organization's plan; null if it has no plan, or a plan that is not in force. */
export function planOf(
  plans: ReadonlyMap<string, Plan>,
  { plan: name }: Pick<CallerOrganization, "plan">,
): Plan | null {
  return (name !== null && plans.get(name)) || null;
}

/** The organization's plan in force. Throws `no_active_plan` if there is none. */
export function activePlan(plans: ReadonlyMap<string, Plan>, organization: Pick<CallerOrganization, "plan">): Plan {
  const plan = planOf(plans, organization);
  if (plan) return plan;
  throw noActivePlan();
}

/**
 * Throws `context_length_exceeded` if the input is far longer than the model's context. Because the input's length is
 * an estimate, the engine decides about any other input.
 */
export function requireContext(model: Model, inputTokens: number): void {
  if (inputTokens < 2 * model.contextTokens) return;
  throw withOverflow(inputTooLong({}), model.contextTokens, inputTokens);
}

type ModelBounds = Pick<Model, "contextTokens" | "outputTokens_max">;

/** The output tokens that are allowed whatever the input's length: a few thousand at most, enough for a summary. */
export function outputTokensReserved({ contextTokens, outputTokens_max }: ModelBounds): number {
  return Math.max(1, Math.min(4096, outputTokens_max, Math.floor(contextTokens / 4)));
}

/**
 * The output tokens that the model's own cap and the rest of its context allow. The input's length is an upper estimate,
 * which may leave nothing of a context that has room. So the reserved tokens are always allowed, and the engine decides
 * whether input and answer fit.
 */
export function outputTokensAllowed(model: ModelBounds, inputTokens: number): number {
  return Math.min(model.outputTokens_max, Math.max(outputTokensReserved(model), model.contextTokens - inputTokens));
}

/** The output tokens that a hold reserves in one step, and the fewest for which a request is worth starting. */
export const stepTokens = 4096;
const leastTokens = 256;

/** A request's tokens stay below this, and its nanos below `nanos_max`, whatever an engine reports. */
const tokens_max = 1e8;

export interface HoldPlan {
  inputNanos: number;
  outputTokens: number;
  outputTokens_min: number;
  /** The cap on the output tokens: the request's cap or the model's, whichever is lower. */
  outputTokensCap: number;
}

/** The hold of a request (docs/design/usage.md, Holds): the input at the highest input price, and one step of output. */
export function holdFor(inputTokens: number, model: Model, request: InferenceRequest): HoldPlan {
  const { prices } = model;
  const searches = request.passed?.searches ?? 0;
  const dearest = Math.max(prices.input, prices.cachedInput, prices.cacheWrite);
  const outputTokensCap = Math.max(
    1,
    wholeUpTo(Math.min(request.outputTokens_max ?? Infinity, model.outputTokens_max), tokens_max),
  );
  return {
    inputNanos: wholeUpTo(
      costOf(wholeUpTo(inputTokens, tokens_max), dearest) + costOf(searches, prices.search ?? 0),
      nanos_max,
    ),
    // The hold of an answer that is passed on as its engine wrote it, and not streamed, cannot grow, so it covers the
    // whole answer.
    outputTokens: request.passed && !request.stream ? outputTokensCap : Math.min(outputTokensCap, stepTokens),
    outputTokens_min: Math.min(outputTokensCap, leastTokens),
    outputTokensCap,
  };
}

function promptNanos(usage: Usage, prices: Prices): number {
  const input = costOf(wholeUpTo(usage.inputTokens, tokens_max), prices.input);
  const cachedInput = costOf(wholeUpTo(usage.cachedInputTokens, tokens_max), prices.cachedInput);
  const cacheWrite = costOf(wholeUpTo(usage.cacheWriteTokens, tokens_max), prices.cacheWrite);
  return wholeUpTo(input + cachedInput + cacheWrite, nanos_max);
}

/**
 * The number of tokens by which the hold grows at a time once the answer is longer than its cap, because the engine
 * exceeded the cap or counts differently from Sluice.
 */
const beyondCapTokens = 256;

/** The room of a hold: the nanos beyond the cost of the prompt, and the output tokens that these nanos cover. */
export class HoldRoom {
  readonly #prices: Prices;
  #heldNanos = 0;
  #promptNanos = 0;
  #tokens = 0;

  constructor(prices: Prices, heldNanos: number, promptNanos: number) {
    this.#prices = prices;
    this.set(heldNanos, promptNanos);
  }

  get heldNanos(): number {
    return this.#heldNanos;
  }

  get tokens(): number {
    return this.#tokens;
  }

  set(heldNanos: number, promptNanos = this.#promptNanos): void {
    this.#heldNanos = heldNanos;
    this.#promptNanos = promptNanos;
    this.#tokens = tokensFor(heldNanos - promptNanos, this.#prices.output);
  }

  /** Leaves less of the hold for the output if, by this usage, the prompt costs more than was held for it. */
  promptCosts(usage: Usage): void {
    const nanos = promptNanos(usage, this.#prices);
    if (nanos > this.#promptNanos) this.set(this.#heldNanos, nanos);
  }

  /** The nanos of a hold that covers this many output tokens. */
  nanosFor(tokens: number): number {
    return wholeUpTo(this.#promptNanos + costOf(tokens, this.#prices.output), nanos_max);
  }

  /** The output tokens that the next growth is to cover: one step more, but at most the request's cap. */
  target(wanted: number, cap: number): number {
    if (wanted >= cap) return wanted + beyondCapTokens;
    return Math.min(Math.max(wanted, this.#tokens) + stepTokens, cap);
  }
}

/** A usage in a form that the ledger can record, whatever an engine reported: whole counts, none below zero. */
export function bookable(usage: Usage): Usage {
  const outputTokens = wholeUpTo(usage.outputTokens, tokens_max);
  return {
    inputTokens: wholeUpTo(usage.inputTokens, tokens_max),
    cachedInputTokens: wholeUpTo(usage.cachedInputTokens, tokens_max),
    cacheWriteTokens: wholeUpTo(usage.cacheWriteTokens, tokens_max),
    outputTokens,
    reasoningTokens: Math.min(wholeUpTo(usage.reasoningTokens, tokens_max), outputTokens),
    source: usage.source,
  };
}

/** A whole number from 0 to `max`. Anything that is not a number becomes 0, and a fraction is rounded up. */
export function wholeUpTo(value: number, max: number): number {
  return Number.isNaN(value) ? 0 : Math.min(max, Math.max(0, Math.ceil(value)));
}

interface AmpleQuestion {
  organizationId: string;
  keyId: string;
  model: string;
  plan: Plan;
  /** The nanos that will be reserved for the request while it runs. */
  nanos: number;
  /** The requests that this node runs for all organizations, at least as many as it runs for this one. */
  running: number;
}

interface GrantReadings {
  windows: WindowReadings;
  /** The organization's limit on open requests, if it is another one than its plan's; null: none. */
  concurrentRequests?: number | null | undefined;
  /** The states of the limits of the key, its person and its team, as far as they have limits of their own. */
  subjects?: readonly SubjectReading[] | undefined;
}

/** The age from which the state of a limit (its size and use) that came with a grant is too old to be used. */
const believed_ms = 5_000;
const remembered_max = 10_000;
/** A window has ample room if this many requests of the same size fit into it. */
const holds_fit_min = 20;
/** A hold (the amount reserved for a request) is slight if this many holds of the same size fit into each window. */
const slight_holds_fit_min = 100;
/** A concurrency limit leaves ample room if it is this many times the number of running requests. */
const running_fit_min = 4;

/**
 * A hint that an organization, the key and its team have so much room that a request will surely be granted, so that
 * the engine may be asked while the ledger still decides. It comes from this node's last grants; a refusal or an outage
 * withdraws it. If the hint is wrong, an engine has started in vain: nothing is forwarded to the caller before the
 * grant.
 */
export class Ample {
  readonly #organizations = new Map<string, Omit<GrantReadings, "subjects"> & { at_ms: number }>();
  /**
   * The last known states of limits. The map's key is the id of a key, with the limits for all models of the key, its
   * person and its team; or a key and model (`forModel`), with their limits for that model.
   */
  readonly #keys = new Map<string, { subjects: readonly SubjectReading[]; at_ms: number }>();
  readonly #now_ms: () => number;

  constructor(now_ms: () => number) {
    this.#now_ms = now_ms;
  }

  isAmple(question: AmpleQuestion): boolean {
    return this.#fits(question, holds_fit_min);
  }

  /**
   * Whether the amount that the request will hold is at most a hundredth of what each window has left: then the hold
   * takes room from nobody, even if it cannot shrink.
   */
  isSlight(question: AmpleQuestion): boolean {
    return this.#fits(question, slight_holds_fit_min);
  }

  #fits({ organizationId, keyId, model, plan, nanos: nanosHeld, running }: AmpleQuestion, holds_min: number): boolean {
    const nanos = holds_min * nanosHeld;
    const organization = this.#organizations.get(organizationId);
    if (!organization || this.#isOld(organization.at_ms)) return false;
    const { windows, concurrentRequests = plan.concurrentRequests } = organization;
    if (!runningFits(running, concurrentRequests)) return false;
    if (!windowKinds.every((kind) => fits(windows[kind], windows[kind].limit, nanos))) return false;
    if (this.#keys.size === 0) return true;
    // A key without an entry has no limit or is new to this node. If the key is new, the hint may be wrong once.
    return [keyId, forModel(keyId, model)].every((name) => {
      const key = this.#keys.get(name);
      return !key || (!this.#isOld(key.at_ms) && key.subjects.every((subject) => hasRoom(subject, nanos)));
    });
  }

  granted(
    { organizationId, keyId, model }: Pick<AmpleQuestion, "organizationId" | "keyId" | "model">,
    { windows, concurrentRequests, subjects = [] }: GrantReadings,
  ): void {
    const at_ms = this.#now_ms();
    remember(this.#organizations, organizationId, { windows, concurrentRequests, at_ms });
    if (this.#keys.size === 0 && subjects.length === 0) return;
    const [forAll, forOne] = [subjects.filter((one) => !one.models), subjects.filter((one) => one.models)];
    this.#learn(keyId, forAll, at_ms);
    this.#learn(forModel(keyId, model), forOne, at_ms);
  }

  #learn(name: string, subjects: readonly SubjectReading[], at_ms: number): void {
    if (subjects.length > 0) remember(this.#keys, name, { subjects, at_ms });
    else this.#keys.delete(name);
  }

  /** Withdraws the hint for an organization, because its limit refused a request, or the ledger did not answer. */
  forget(organizationId: string): void {
    this.#organizations.delete(organizationId);
  }

  /**
   * Withdraws the hint for a key, because a limit of the key, of its team or for its models refused a request. The hint
   * stays for other keys.
   */
  keyRefused(keyId: string, model?: string): void {
    const name = model === undefined ? keyId : forModel(keyId, model);
    remember(this.#keys, name, { subjects: [], at_ms: Number.NEGATIVE_INFINITY });
  }

  #isOld(at_ms: number): boolean {
    return this.#now_ms() - at_ms > believed_ms;
  }
}

const forModel = (keyId: string, model: string) => `${keyId} ${model}`;

function remember<Value>(known: Map<string, Value>, id: string, value: Value): void {
  known.delete(id);
  if (known.size >= remembered_max) known.delete(known.keys().next().value!);
  known.set(id, value);
}

function hasRoom({ windows, concurrentRequests, running }: SubjectReading, nanos: number): boolean {
  if (!runningFits(running, concurrentRequests)) return false;
  return windowKinds.every((kind) => fits(windows[kind], windows[kind].limit, nanos));
}

function fits({ used, held }: { used: number; held: number }, limit: number | null, nanos: number): boolean {
  return limit === null || used + held + nanos <= limit;
}

function runningFits(running: number, limit: number | null): boolean {
  return limit === null || running * running_fit_min < limit;
}
