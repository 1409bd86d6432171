// A reference model of the ledger's rules, in memory and as plain as possible: the SQL must agree with it, and nodes
// are tested against it under a virtual clock. It takes one command at a time, without batching.

import { noUsage, type Usage } from "../../../src/core/inference/usage.ts";
import { type Limited, limitedOf } from "../../../src/core/store/budget.ts";
import type {
  Admit,
  BillingSource,
  Checkpoint,
  ClockRange,
  Command,
  FullLimit,
  Grow,
  LedgerAnswer,
  RequestFacts,
  Settle,
  SettleAnswer,
  SubjectReading,
  UsageLimits,
  WindowKind,
  WindowReadings,
} from "../../../src/core/store/ledger.ts";
import { window_nanos_max } from "../../../src/core/store/ledger.ts";
import {
  BudgetModel,
  isCrowded,
  type ModelRaise,
  type ModelSubject,
  type Own,
  type OwnLimits,
  roomOf,
  spanRead,
  subjectsRead,
  teamOf,
  underRaise,
} from "./budget-model.ts";
import {
  type Anchor,
  type Interval,
  limitIn,
  monthAt,
  session_ms,
  sessionAt,
  weekAt,
  zoneAt,
} from "./windows-model.ts";

export interface ModelOrganization {
  anchors: Anchor[];
  extra: { enabled: boolean; capNanos: number | null };
  /** The raise (a temporary increase of limits) on top of the organization's plan. */
  raise?: ModelRaise | null;
  /** The limits of the organization's plan in force, if there is one; recovered requests are charged within them. */
  limits?: UsageLimits;
  /** The own limits of the organization's keys, people and teams, for histories that change them. */
  own?: OwnLimits;
  /** The subjects, besides the organization, against which a key's request for a model counts at this moment. */
  subjectsOf?(keyId: string, model: string): readonly ModelSubject[];
}

interface Total {
  used: number;
  held: number;
}
interface Window extends Interval {
  kind: WindowKind | "extra";
  total: Total;
  /** The limit of the key, person or team to which the window belongs; absent in windows of an organization. */
  limit?(): number;
}
interface Hold {
  facts: RequestFacts;
  limits: UsageLimits;
  nanos: number;
  outputTokens: number;
  source: BillingSource;
  windows: Record<WindowKind | "extra", Window>;
  usedBefore: Record<WindowKind, number>;
  own: Own[];
  leaseUntil_ms: number;
  lease_ms: number;
  growth: number;
  checkpoint: number;
  usage: Usage;
}
export interface ModelRecord {
  requestId: string;
  organizationId: string;
  source: BillingSource;
  charged: number;
  uncharged: number;
  usage: Usage;
  recovered: boolean;
  outcome: Settle["outcome"];
  /** The request that was recovered; only in the entry of its late settlement. */
  lateOf?: string;
  /** Null if the request was given up before it was admitted. */
  windows: Record<WindowKind | "extra", Window> | null;
}
interface Account {
  sessionOpenedAt_ms: number | null;
  windows: Map<string, Window>;
}

const kinds: readonly WindowKind[] = ["session", "week", "month"];
const isIn = (range: ClockRange | undefined, at_ms: number): boolean =>
  !range || (range.earliest.getTime() <= at_ms && at_ms <= range.latest.getTime());
const infinite = (limit: number | null): number => limit ?? Number.POSITIVE_INFINITY;

export class LedgerModel {
  readonly holds = new Map<string, Hold>();
  readonly records = new Map<string, ModelRecord>();
  readonly budgets = new BudgetModel();
  /** The holds of requests that were recovered at their last checkpoint. */
  readonly #recovered = new Map<string, Hold>();
  readonly #accounts = new Map<string, Account>();

  constructor(
    readonly organizations: Map<string, ModelOrganization>,
    readonly now_ms: () => number,
    readonly chargeHolds = false,
  ) {}

  /**
   * Runs the commands in the order of a batch: settles, grows, admits, organization by organization; then checkpoints.
   * Late settlements are booked after the batch.
   */
  run(commands: readonly Command[]): LedgerAnswer[] {
    const verbs = ["settle", "grow", "admit", "checkpoint"];
    const answers: LedgerAnswer[] = [];
    const order = [...commands.keys()].sort((a, b) => {
      const [one, other] = [commands[a]!, commands[b]!];
      return verbs.indexOf(one.verb) - verbs.indexOf(other.verb) || a - b;
    });
    for (const position of order) answers[position] = this.#carryOut(commands[position]!);
    return answers.map((answer, position) => {
      const command = commands[position]!;
      const record = this.records.get(command.requestId);
      return command.verb === "settle" && answer.answer === "already" && record
        ? this.settleLate(command, record)
        : answer;
    });
  }

  /** Shortens leases that end later than a lease can, because the clock was set back. */
  protected clipLeases(): void {
    for (const hold of this.holds.values()) {
      const latest_ms = this.now_ms() + hold.lease_ms;
      if (hold.leaseUntil_ms > latest_ms + 1000) hold.leaseUntil_ms = latest_ms;
    }
  }

  /**
   * Settles requests whose leases have lapsed. If the clock is outside `range`, it was set, and no lease counts as
   * lapsed.
   */
  recover(limit: number, range?: ClockRange): number {
    this.clipLeases();
    const lapsed = [...this.holds.values()]
      .filter((hold) => hold.leaseUntil_ms <= this.now_ms() && isIn(range, this.now_ms()))
      .sort((a, b) => a.leaseUntil_ms - b.leaseUntil_ms)
      .slice(0, limit);
    for (const hold of lapsed) {
      const cost = this.chargeHolds && hold.facts.stream ? hold.nanos : costOf(hold.usage, hold);
      const nanos = hold.facts.isRepeatable ? 0 : cost;
      const { limits } = this.organizations.get(hold.facts.organizationId)!;
      this.#end(hold, limits ?? hold.limits, hold.usage, nanos, "failed", true);
      if (nanos === costOf(hold.usage, hold)) this.#recovered.set(hold.facts.requestId, hold);
    }
    return lapsed.length;
  }

  /** Books an operator's entry in a current window, and returns the charged nanos; null if no session is open. */
  adjust(entryId: string, organizationId: string, kind: WindowKind | "extra", nanos: number): number | null {
    const known = this.records.get(entryId);
    if (known) return known.charged;
    const windows = this.#windowsNow(organizationId);
    if (kind === "session" && sessionAt(this.#account(organizationId).sessionOpenedAt_ms, this.now_ms()) === null)
      return null;
    const { total } = windows[kind];
    const charged = Math.max(0 - total.used, Math.min(nanos, window_nanos_max - total.used));
    total.used += charged;
    const entry = { usage: noUsage, uncharged: 0, recovered: false, outcome: "completed", windows: null } as const;
    const source = kind === "extra" ? "extra" : "plan";
    this.records.set(entryId, { requestId: entryId, organizationId, source, charged, ...entry });
    return charged;
  }

  /** The organization's windows in force, with their totals. */
  readings(organizationId: string, limits: UsageLimits): WindowReadings {
    return readings(this.#windowsNow(organizationId), this.#inForce(organizationId, limits));
  }

  /** Every window of the organization that was ever used. */
  windows(organizationId: string): Window[] {
    return [...this.#account(organizationId).windows.values()];
  }

  #carryOut(command: Command): LedgerAnswer {
    switch (command.verb) {
      case "admit":
        return this.#admit(command);
      case "grow":
        return this.#grow(command);
      case "checkpoint":
        return this.#checkpoint(command);
      case "settle":
        return this.#settle(command);
    }
  }

  /** A plan's limits, with the organization's raise. */
  #inForce(organizationId: string, limits: UsageLimits): UsageLimits {
    return underRaise(limits, this.organizations.get(organizationId)?.raise, this.now_ms());
  }

  #admit(asked: Admit): LedgerAnswer {
    const admit = { ...asked, limits: this.#inForce(asked.organizationId, asked.limits) };
    const organization = this.organizations.get(admit.organizationId);
    if (this.records.has(admit.requestId)) return { answer: "over" };
    if (!organization) return { answer: "unknown" };
    const at = new Date(this.now_ms());
    const already = this.holds.get(admit.requestId);
    if (already) {
      const { nanos, outputTokens, source, windows, usedBefore } = already;
      const seen = readings(windows, admit.limits);
      for (const kind of kinds) {
        seen[kind].used = usedBefore[kind];
        if (source === "plan") seen[kind].held -= nanos;
      }
      return { answer: "granted", nanos, outputTokens, source, windows: seen, ...teamOf(already.own), at };
    }
    const windows = this.#windowsNow(admit.organizationId);
    const seen = readings(windows, admit.limits);
    const price = admit.prices.output;
    const whole = admit.inputNanos + nanosFor(admit.outputTokens, price);
    const least = admit.inputNanos + nanosFor(admit.outputTokens_min, price);
    const roomIn = (kind: WindowKind) => infinite(seen[kind].limit) - seen[kind].used - seen[kind].held;
    const own = this.budgets.of(organization.subjectsOf?.(admit.keyId, admit.model) ?? [], windows);
    const ownRoom = roomOf(own);
    const planRoom = Math.min(ownRoom.free, ...kinds.map(roomIn));
    const { enabled } = organization.extra;
    const cap = limitIn(infinite(organization.extra.capNanos), windows.extra);
    const extraTotal = windows.extra.total;
    const extraRoom = enabled
      ? Math.min(ownRoom.free, cap - extraTotal.used - extraTotal.held)
      : Number.NEGATIVE_INFINITY;
    const subjects = subjectsRead(own, this.holds.values());

    const source: BillingSource | null =
      whole <= planRoom
        ? "plan"
        : whole <= extraRoom
          ? "extra"
          : least <= planRoom
            ? "plan"
            : least <= extraRoom
              ? "extra"
              : null;
    if (source === null) {
      const settledFull = kinds.filter((kind) => infinite(seen[kind].limit) - seen[kind].used < least);
      const isOpen = settledFull.length === 0 || (enabled && least <= cap - extraTotal.used);
      const waitingHelps = isOpen && least <= ownRoom.unused;
      const full = waitingHelps ? kinds.filter((kind) => roomIn(kind) < least) : settledFull;
      full.sort((a, b) => seen[b].resetAt.getTime() - seen[a].resetAt.getTime());
      const capNanos = Number.isFinite(cap) ? cap : null;
      const extra = { enabled, capNanos, ...extraTotal };
      const zone = zoneAt(organization.anchors, this.now_ms());
      const shortage = { kinds: full, windows: seen, ...subjects, extra, ...(zone !== null && { zone }), at };
      return { answer: waitingHelps ? "reserved" : "exhausted", ...shortage };
    }
    const running = [...this.holds.values()].filter(
      (hold) => hold.facts.organizationId === admit.organizationId,
    ).length;
    if (running >= infinite(admit.limits.concurrentRequests) || isCrowded(own, this.holds.values())) {
      const { concurrentRequests } = admit.limits;
      const raised = concurrentRequests === asked.limits.concurrentRequests ? {} : { concurrentRequests };
      return { answer: "concurrency", windows: seen, ...subjects, ...raised, at };
    }

    const room = source === "plan" ? planRoom : extraRoom;
    const outputTokens = whole <= room ? admit.outputTokens : Math.floor((1000 * (room - admit.inputNanos)) / price);
    const nanos = admit.inputNanos + nanosFor(outputTokens, price);
    this.#account(admit.organizationId).sessionOpenedAt_ms = windows.session.startsAt_ms;
    const hold: Hold = {
      facts: admit,
      limits: admit.limits,
      nanos,
      outputTokens,
      source,
      windows,
      usedBefore: { session: seen.session.used, week: seen.week.used, month: seen.month.used },
      own,
      leaseUntil_ms: this.now_ms() + admit.lease_ms,
      lease_ms: admit.lease_ms,
      growth: 0,
      checkpoint: 0,
      usage: noUsage,
    };
    this.holds.set(admit.requestId, hold);
    for (const window of this.#billed(hold)) window.total.held += nanos;
    return { answer: "granted", nanos, outputTokens, source, windows: seen, ...subjects, ...teamOf(own), at };
  }

  #grow(grow: Grow): LedgerAnswer {
    const hold = this.holds.get(grow.requestId);
    if (!hold) return { answer: "gone" };
    const room = Math.min(
      ...this.#billed(hold).map(
        (window) => this.#limit(hold, grow.limits, window) - window.total.used - window.total.held,
      ),
    );
    const { extra } = this.organizations.get(grow.organizationId)!;
    const allowed = hold.source === "extra" && !extra.enabled ? Math.min(0, room) : room;
    const wanted = Math.min(Math.max(grow.nanosTotal, hold.nanos), hold.nanos + allowed);
    const least = grow.number > hold.growth ? Math.min(grow.nanosTotal_min, hold.nanos) : hold.nanos;
    const nanos = Math.max(wanted, least);
    if (nanos < grow.nanosTotal_min)
      return { answer: "full", limits: this.#full(hold, grow.limits, grow.nanosTotal_min - hold.nanos) };
    hold.growth = Math.max(hold.growth, grow.number);
    for (const window of this.#billed(hold)) window.total.held += nanos - hold.nanos;
    hold.nanos = nanos;
    return { answer: "granted", nanos };
  }

  /** The limits that leave no room for a hold to grow by `least`. */
  #full(hold: Hold, limits: UsageLimits, least: number): FullLimit[] {
    const organization = { limitedBy: "organization" } as const;
    const whose = new Map<Window, Limited>(Object.values(hold.windows).map((window) => [window, organization]));
    for (const { subject, windows } of hold.own)
      for (const window of windows) whose.set(window, limitedOf({ ...subject, limitedBy: subject.subject }));
    return this.#billed(hold)
      .filter((window) => this.#limit(hold, limits, window) - window.total.used - window.total.held < least)
      .map((window) => ({ ...whose.get(window)!, window: window.kind, resetAt: new Date(window.endsAt_ms) }));
  }

  #checkpoint(checkpoint: Checkpoint): LedgerAnswer {
    const hold = this.holds.get(checkpoint.requestId);
    if (!hold) return { answer: "gone" };
    hold.leaseUntil_ms = Math.max(hold.leaseUntil_ms, this.now_ms() + checkpoint.lease_ms);
    const newer = checkpoint.number > hold.checkpoint ? checkpoint.usage : hold.usage;
    hold.usage = {
      ...newer,
      outputTokens: Math.max(hold.usage.outputTokens, checkpoint.usage.outputTokens),
      reasoningTokens: Math.max(hold.usage.reasoningTokens, checkpoint.usage.reasoningTokens),
    };
    hold.checkpoint = Math.max(hold.checkpoint, checkpoint.number);
    return { answer: "extended" };
  }

  #settle(settle: Settle): LedgerAnswer {
    if (this.records.has(settle.requestId)) return { answer: "already" };
    const hold = this.holds.get(settle.requestId);
    if (hold) return this.#end(hold, settle.limits, settle.usage, settle.nanos, settle.outcome, false);
    const { requestId, organizationId, usage, nanos, outcome } = settle;
    const ending = { source: "plan", charged: 0, uncharged: nanos, recovered: false, windows: null } as const;
    this.records.set(requestId, { requestId, organizationId, usage, outcome, ...ending });
    return { answer: "settled", charged: 0, uncharged: nanos };
  }

  /**
   * Adds one entry for the usage that is missing in another node's record of a request, charged within the limits in
   * force.
   */
  protected settleLate(settle: Settle, record: ModelRecord): LedgerAnswer {
    const { requestId, organizationId, usage } = settle;
    const entryId = lateIdOf(requestId);
    const hold = this.#recovered.get(requestId);
    const nanos = settle.nanos - record.charged - record.uncharged;
    if (!hold?.facts.stream || settle.isRepeatable || nanos <= 0 || this.records.has(entryId))
      return { answer: "already" };
    const { limits } = this.organizations.get(organizationId)!;
    const entry = { ...hold, nanos: 0, facts: { ...hold.facts, requestId: entryId } };
    const rest = lessUsage(usage, record.usage);
    const { charged, uncharged } = this.#end(entry, limits ?? hold.limits, rest, nanos, record.outcome, false);
    this.records.get(entryId)!.lateOf = requestId;
    return { answer: "late", entryId, charged, uncharged };
  }

  #end(
    hold: Hold,
    limits: UsageLimits,
    usage: Usage,
    nanos: number,
    outcome: Settle["outcome"],
    recovered: boolean,
  ): SettleAnswer & { answer: "settled" } {
    const { requestId, organizationId } = hold.facts;
    const room = this.#billed(hold).map((window) => {
      const left = this.#limit(hold, limits, window) - window.total.used;
      const others = Math.max(0, Math.min(window.total.held - hold.nanos, left - hold.nanos));
      return left - others;
    });
    const charged = Math.max(0, Math.min(nanos, ...room));
    for (const window of this.#billed(hold)) {
      window.total.used += charged;
      window.total.held -= hold.nanos;
    }
    this.holds.delete(requestId);
    const { source, windows } = hold;
    this.records.set(requestId, {
      requestId,
      organizationId,
      source,
      charged,
      uncharged: nanos - charged,
      usage,
      recovered,
      outcome,
      windows,
    });
    return { answer: "settled", charged, uncharged: nanos - charged };
  }

  /**
   * The windows that are charged: the organization's or, for extra usage, its month of extra usage; in both cases also
   * those of the request's own subjects (key, person, team).
   */
  #billed(hold: Hold): Window[] {
    const billed = hold.source === "extra" ? [hold.windows.extra] : kinds.map((kind) => hold.windows[kind]);
    return [...billed, ...hold.own.flatMap(({ windows }) => windows)];
  }

  #limit(hold: Hold, limits: UsageLimits, window: Window): number {
    if (window.limit) return window.limit();
    const { organizationId } = hold.facts;
    const { extra } = this.organizations.get(organizationId)!;
    const limit = window.kind === "extra" ? extra.capNanos : this.#inForce(organizationId, limits)[window.kind];
    return limitIn(infinite(limit), window);
  }

  #account(organizationId: string): Account {
    let account = this.#accounts.get(organizationId);
    if (account) return account;
    account = { sessionOpenedAt_ms: null, windows: new Map() };
    this.#accounts.set(organizationId, account);
    return account;
  }

  #windowsNow(organizationId: string): Record<WindowKind | "extra", Window> {
    const { anchors } = this.organizations.get(organizationId)!;
    const account = this.#account(organizationId);
    const now_ms = this.now_ms();
    const session = sessionAt(account.sessionOpenedAt_ms, now_ms) ?? {
      startsAt_ms: now_ms,
      endsAt_ms: now_ms + session_ms,
    };
    const window = (kind: Window["kind"], interval: Interval): Window => {
      const name = `${kind} ${interval.startsAt_ms}`;
      const known = account.windows.get(name);
      const { endsAt_ms, wholeAt_ms } = interval;
      if (known) Object.assign(known, { endsAt_ms, wholeAt_ms });
      const found = known ?? { kind, ...interval, total: { used: 0, held: 0 } };
      account.windows.set(name, found);
      return found;
    };
    const month = monthAt(anchors, now_ms);
    return {
      session: window("session", session),
      week: window("week", weekAt(anchors, now_ms)),
      month: window("month", month),
      extra: window("extra", month),
    };
  }
}

export const lateIdOf = (requestId: string): string => `${requestId}_late`;

/**
 * Makes answers of SQL and of the model comparable: infinity and null both mean no limit, the id of a late entry is
 * left out, and subjects are sorted.
 */
export function comparable(answers: readonly LedgerAnswer[]): unknown {
  const nameOf = ({ subject, models = "" }: SubjectReading) => `${subject} ${models}`;
  return answers.map((answer) => {
    const subjects = "subjects" in answer && answer.subjects?.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    return JSON.parse(JSON.stringify({ ...answer, ...(subjects && { subjects }), entryId: undefined }));
  });
}

export function sumOf(usage: Usage, more: Usage): Usage {
  return lessUsage(usage, lessUsage(noUsage, more));
}

function lessUsage(usage: Usage, less: Usage): Usage {
  return {
    inputTokens: usage.inputTokens - less.inputTokens,
    cachedInputTokens: usage.cachedInputTokens - less.cachedInputTokens,
    cacheWriteTokens: usage.cacheWriteTokens - less.cacheWriteTokens,
    outputTokens: usage.outputTokens - less.outputTokens,
    reasoningTokens: usage.reasoningTokens - less.reasoningTokens,
    source: usage.source,
  };
}

function costOf(usage: Usage, hold: Hold): number {
  const { prices } = hold.facts;
  return (
    nanosFor(usage.inputTokens, prices.input) +
    nanosFor(usage.cachedInputTokens, prices.cachedInput) +
    nanosFor(usage.cacheWriteTokens, prices.cacheWrite) +
    nanosFor(usage.outputTokens, prices.output)
  );
}

/** The cost of tokens at a price in picos: exact, then rounded up to a nano. */
const nanosFor = (tokens: number, price: number) => Math.ceil((tokens * price) / 1000);

function readings(windows: Record<WindowKind, Window>, limits: UsageLimits): WindowReadings {
  const reading = (kind: WindowKind) => ({
    kind,
    ...windows[kind].total,
    ...spanRead(limits[kind], windows[kind]),
  });
  return { session: reading("session"), week: reading("week"), month: reading("month") };
}
