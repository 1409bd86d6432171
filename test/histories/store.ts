// The store of a history (a simulated run): the reference model of the ledger (test/core/store/ledger-model.ts) behind
// a log. Once a transaction is carried out, all nodes see it; it is on the disk when a later barrier has been written.
// A crash loses transactions that were not on the disk.

import type { Calendar } from "../../src/admin/store/calendar.ts";
import type { ClockRange, Command, LedgerAnswer, Recovered, WindowKind } from "../../src/core/store/ledger.ts";
import type { Plan } from "../../src/core/store/plan.ts";
import type { OwnLimits } from "../core/store/budget-model.ts";
import { LedgerModel, type ModelOrganization } from "../core/store/ledger-model.ts";
import { type Anchor, withAnchor, withCalendar } from "../core/store/windows-model.ts";
import { KeptModel } from "./kept-model.ts";
import type { Time } from "./time.ts";

/** One transaction of the store. */
export interface Entry {
  at_ms: number;
  durableAt_ms: number;
  /** Whether a crash has undone the transaction. */
  lost: boolean;
  /** The requests that the transaction concerns. */
  requests: readonly string[];
  /** The anchors and plans of the organizations when the transaction was carried out. */
  organizations: ReadonlyMap<string, ModelOrganization>;
  replay(model: LedgerModel): void;
}

/** The defects that a store may have, for histories that show that its rules are needed. */
export interface StoreDefects {
  model?: new (...parts: ConstructorParameters<typeof LedgerModel>) => LedgerModel;
  /** The defect: the store answers before the transaction is on the disk. */
  withoutBarrier?: boolean;
  /** The defect: the store finds a window by the clock of the node that asks. */
  nodeClockDecides?: boolean;
  /** Replaces `withAnchor`, the rule for the anchors of an organization after a new anchor was set. */
  withAnchor?: (anchors: readonly Anchor[], anchor_ms: number, now_ms: number) => Anchor[];
  withCalendar?: typeof withCalendar;
}

type KeptAct<Result> = (kept: KeptModel, model: LedgerModel) => Result;

/** How long Postgres may take to write its log without a barrier: it writes every 200 ms, and may take three rounds. */
const written_ms = 600;

export class Store {
  model: LedgerModel;
  /** The rows of answers that are kept (stored for repeats). */
  kept: KeptModel;
  readonly log: Entry[] = [];
  /** The time until which the store answers nobody. */
  downUntil_ms = 0;
  /** The time until which the store carries out nothing. */
  stalledUntil_ms = 0;
  /** The milliseconds by which the store's clock is ahead, since it was set. */
  isAhead_ms = 0;
  /** The number of the store's crashes: no connection outlives a crash. */
  crashes = 0;
  /** The time of the transaction that is being carried out; null if there is none. */
  #carriedOutAt_ms: number | null = null;
  /** The organizations by id. The map is never changed: each change replaces it with another. */
  #organizations: ReadonlyMap<string, ModelOrganization>;
  /** The organizations as the ledger's reference model sees them. */
  readonly #seen = new Map<string, ModelOrganization>();
  #primed = 0;
  /**
   * The key is the id of a request; the value is the time, by the store's clock, when a reader first saw that the
   * request has a record.
   */
  readonly #endSeen = new Map<string, number>();

  constructor(
    readonly time: Time,
    organizations: ReadonlyMap<string, ModelOrganization>,
    readonly recovery: "checkpoint" | "hold",
    readonly defects: StoreDefects,
  ) {
    this.#organizations = organizations;
    this.kept = new KeptModel(() => this.clock_ms);
    this.model = this.#fresh();
  }

  /** The time by the store's own clock. */
  get now_ms(): number {
    return this.time.now_ms + this.isAhead_ms;
  }

  /** The time that the store's clock gives to a transaction while it is carried out. */
  get clock_ms(): number {
    return this.#carriedOutAt_ms ?? this.now_ms;
  }

  endSeenAt_ms(requestId: string): number {
    const at_ms = this.#endSeen.get(requestId) ?? this.clock_ms;
    this.#endSeen.set(requestId, at_ms);
    return at_ms;
  }

  /** Carries out commands before the history begins. */
  prime(at_ms: number, commands: readonly Command[]): void {
    this.#enter(at_ms, this.time.now_ms, [], (model) => model.run(commands));
    this.#primed = this.log.length;
  }

  /** Carries out a batch and its barrier, which is on the disk `flush_ms` later. */
  run(commands: readonly Command[], flush_ms: number, wall_ms: number): { answers: LedgerAnswer[]; entry: Entry } {
    const { withoutBarrier, nodeClockDecides } = this.defects;
    const at_ms = this.now_ms + (nodeClockDecides ? wall_ms : 0);
    const durableAt_ms = this.time.now_ms + (withoutBarrier ? written_ms : flush_ms);
    const requests = commands.map(({ requestId }) => requestId);
    return this.#enter(at_ms, durableAt_ms, requests, (model) => model.run(commands));
  }

  recover(limit: number, range: ClockRange | undefined, flush_ms: number): { result: Recovered; entry: Entry } {
    const before = [...this.model.holds.keys()];
    const { answers: settled, entry } = this.#enter(this.now_ms, this.time.now_ms + flush_ms, [], (model) =>
      model.recover(limit, range),
    );
    entry.requests = before.filter((id) => !this.model.holds.has(id));
    return { result: { settled, at: new Date(this.now_ms) }, entry };
  }

  /** Carries out a statement about answers that are kept (stored for repeats). */
  keep<Result>(requestIds: readonly string[], flush_ms: number, act: KeptAct<Result>) {
    const at_ms = this.time.now_ms + flush_ms;
    const { answers, entry } = this.#enter(this.now_ms, at_ms, requestIds, (model) => act(this.kept, model));
    return { result: answers, entry };
  }

  adjust(entryId: string, organizationId: string, kind: WindowKind | "extra", nanos: number): Entry {
    const act = (model: LedgerModel) => model.adjust(entryId, organizationId, kind, nanos);
    return this.#enter(this.now_ms, this.time.now_ms, [], act).entry;
  }

  setLimits(organizationId: string, plan: Plan): void {
    this.#change(organizationId, (organization) => ({ ...organization, limits: plan }));
  }

  /**
   * The limits that are set for keys, people and teams, as of now or, while the log is replayed after a crash, as of
   * the replayed transaction.
   */
  ownLimits(organizationId: string): OwnLimits {
    return this.#seen.get(organizationId)!.own!;
  }

  /** Sets limits of keys, people and teams, which apply at once, to running requests too. */
  setOwnLimits(organizationId: string, own: OwnLimits): void {
    const raise = own.raises?.get(organizationId) ?? null;
    this.#change(organizationId, (organization) => ({ ...organization, own, raise }));
  }

  setAnchor(organizationId: string, anchor_ms: number): void {
    const next = this.defects.withAnchor ?? withAnchor;
    const now_ms = this.now_ms;
    this.#change(organizationId, (was) => ({ ...was, anchors: next(was.anchors, anchor_ms, now_ms) }));
  }

  /** Sets a calendar. Nothing changes while an earlier change of the calendar is still pending. */
  setCalendar(organizationId: string, calendar: Calendar | null): void {
    const next = this.defects.withCalendar ?? withCalendar;
    const now_ms = this.now_ms;
    this.#change(organizationId, (was) => ({ ...was, anchors: next(was.anchors, calendar, now_ms) ?? was.anchors }));
  }

  anchors(organizationId: string): readonly Anchor[] {
    return this.#organizations.get(organizationId)!.anchors;
  }

  get isStalled(): boolean {
    return this.time.now_ms < this.stalledUntil_ms;
  }

  get down(): boolean {
    return this.time.now_ms < this.downUntil_ms;
  }

  /**
   * Undoes the transactions that were not on the disk, and those that reached the disk, or were confirmed, in the last
   * `lost_ms`. Returns the transactions that were undone.
   */
  crash(lost_ms = 0): Entry[] {
    this.crashes += 1;
    const undone: Entry[] = [];
    const { log, time } = this;
    while (log.length > this.#primed && log.at(-1)!.durableAt_ms > time.now_ms - lost_ms) undone.push(log.pop()!);
    for (const entry of undone) entry.lost = true;
    this.kept = new KeptModel(() => this.clock_ms);
    const model = this.#fresh();
    for (const entry of log) {
      this.#show(entry.organizations);
      this.#at(entry.at_ms, () => entry.replay(model));
    }
    this.#show(this.#organizations);
    this.model = model;
    return undone;
  }

  #fresh(): LedgerModel {
    const Model = this.defects.model ?? LedgerModel;
    this.#show(this.#organizations);
    return new Model(this.#seen, () => this.clock_ms, this.recovery === "hold");
  }

  #change(organizationId: string, change: (organization: ModelOrganization) => ModelOrganization): void {
    const changed = change(this.#organizations.get(organizationId)!);
    this.#organizations = new Map(this.#organizations).set(organizationId, changed);
    this.#show(this.#organizations);
  }

  #show(organizations: ReadonlyMap<string, ModelOrganization>): void {
    for (const [id, organization] of organizations) this.#seen.set(id, organization);
  }

  #enter<Result>(
    at_ms: number,
    durableAt_ms: number,
    requests: readonly string[],
    act: (model: LedgerModel) => Result,
  ) {
    const organizations = this.#organizations;
    const entry: Entry = { at_ms, durableAt_ms, lost: false, requests, organizations, replay: act };
    const { log } = this;
    // The log is ordered: a barrier covers every transaction before it.
    for (let index = log.length - 1; index >= 0 && log[index]!.durableAt_ms > durableAt_ms; index--)
      log[index]!.durableAt_ms = durableAt_ms;
    log.push(entry);
    return { answers: this.#at(at_ms, () => act(this.model)), entry };
  }

  #at<Result>(at_ms: number, act: () => Result): Result {
    this.#carriedOutAt_ms = at_ms;
    const result = act();
    this.#carriedOutAt_ms = null;
    return result;
  }
}
