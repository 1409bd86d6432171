/**
 * A hint that an organization, the key and its team have so much room that a request will surely be granted, so that
 * the engine may be asked while the ledger still decides. It comes from this node's last grants; a refusal or an outage
 * withdraws it. If it is wrong, an engine has started in vain: nothing is forwarded before the grant.
 */
import { type SubjectReading, type WindowReadings, windowKinds } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";

export interface AmpleQuestion {
  organizationId: string;
  keyId: string;
  /** The model's public id. */
  model: string;
  plan: Plan;
  /** The nanos that the request will hold. */
  nanos: number;
  /** The requests that run on this node. */
  running: number;
}

/** Readings of grants that are older than this are not used. */
const believed_ms = 5_000;
const remembered_max = 10_000;
/** A window has ample room if this many such requests fit into it. */
const holds_fit_min = 20;
/** A concurrency limit has ample room if it is this many times the running requests. */
const running_fit_min = 4;

export class Ample {
  readonly #organizations = new Map<string, { windows: WindowReadings; at_ms: number }>();
  /**
   * By key id: the last readings of the limits of its people and team. By key and model (`forModel`): those of limits
   * for models.
   */
  readonly #keys = new Map<string, { subjects: readonly SubjectReading[]; at_ms: number }>();
  readonly #now_ms: () => number;

  constructor(now_ms: () => number) {
    this.#now_ms = now_ms;
  }

  isAmple({ organizationId, keyId, model, plan, nanos, running }: AmpleQuestion): boolean {
    const organization = this.#organizations.get(organizationId);
    if (!organization || this.#isOld(organization.at_ms)) return false;
    const { windows } = organization;
    if (!runningFits(running, plan.concurrentRequests)) return false;
    if (!windowKinds.every((kind) => fits(windows[kind], windows[kind].limit, nanos))) return false;
    // A key without a reading has no limit, or is new here; then the hint is wrong once.
    return [keyId, forModel(keyId, model)].every((name) => {
      const key = this.#keys.get(name);
      return !key || (!this.#isOld(key.at_ms) && key.subjects.every((subject) => hasRoom(subject, nanos)));
    });
  }

  /** Learns from a grant. `subjects` are those beside the organization that have limits. */
  granted(
    { organizationId, keyId, model }: Pick<AmpleQuestion, "organizationId" | "keyId" | "model">,
    { windows, subjects = [] }: { windows: WindowReadings; subjects?: readonly SubjectReading[] | undefined },
  ): void {
    const at_ms = this.#now_ms();
    remember(this.#organizations, organizationId, { windows, at_ms });
    const [forAll, forOne] = [subjects.filter((one) => !one.models), subjects.filter((one) => one.models)];
    this.#learn(keyId, forAll, at_ms);
    this.#learn(forModel(keyId, model), forOne, at_ms);
  }

  #learn(name: string, subjects: readonly SubjectReading[], at_ms: number): void {
    if (subjects.length > 0) remember(this.#keys, name, { subjects, at_ms });
    else this.#keys.delete(name);
  }

  /** The organization's limit refused a request, or the ledger did not answer. */
  forget(organizationId: string): void {
    this.#organizations.delete(organizationId);
  }

  /** A limit of the key or its team refused a request, or one for models. The rest of the organization has room as before. */
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
  return limit === null || used + held + holds_fit_min * nanos <= limit;
}

function runningFits(running: number, limit: number | null): boolean {
  return limit === null || running * running_fit_min < limit;
}
