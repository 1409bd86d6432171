// Recomputes the store's totals from records and holds after each step of the store, and compares them with the store's
// own totals and with limits.

import type { Calendar } from "../../src/admin/store/calendar.ts";
import { crowdedBy } from "../../src/core/admission/limited-by.ts";
import type {
  Admit,
  BillingSource,
  Command,
  LedgerAnswer,
  Shortage,
  UsageLimits,
  WindowReading,
} from "../../src/core/store/ledger.ts";
import { windowKinds } from "../../src/core/store/ledger.ts";
import { lateIdOf, type ModelRecord } from "../core/store/ledger-model.ts";
import {
  type Anchor,
  type Interval,
  limitIn,
  monthAt,
  session_ms,
  weekAt,
  withAnchor,
  withCalendar,
} from "../core/store/windows-model.ts";
import type { Account, Cell } from "./account.ts";
import { keyIdOf, ownRoomOf } from "./budgets.ts";
import { raisedPlan } from "./decisions.ts";
import { modelIdOf } from "./models.ts";
import { costOf } from "./prices.ts";
import type { Say } from "./rules.ts";
import type { OrganizationPlan } from "./scenario.ts";
import type { Entry } from "./store.ts";
import type { World } from "./world.ts";

export class Books {
  readonly #cells = new Map<string, Cell[]>();
  /**
   * The key is the store's object for a total, which lives until a crash; the value is the judge's own total (`Cell`).
   */
  #cellOfTotal = new Map<object, Cell>();
  #records = new Map<string, ModelRecord>();
  /**
   * The anchors of each organization (the instants from which its weeks and months begin), as they were reported to the
   * judge.
   */
  readonly #anchors: Map<string, Anchor[]>;
  readonly #spans = new Map<readonly Anchor[], Map<string, Interval>>();
  readonly #adjustments = new Map<string, { cell: Cell; added: number; entry: Entry }>();
  /** The key is an organization's id; the value is the number of its running requests at the judge's previous check. */
  readonly #running = new Map<string, number>();

  constructor(
    readonly world: World,
    readonly accounts: ReadonlyMap<string, Account>,
    readonly say: Say,
    /** A callback for each new record of the ledger, with the account of its request. */
    readonly recorded: (account: Account, record: ModelRecord) => void,
  ) {
    this.#anchors = new Map(world.scenario.organizations.map(({ id, anchors }) => [id, anchors]));
  }

  /** Recomputes all totals; called after each step of the store. */
  addUp(commands: readonly Command[], isChecked = true): void {
    const { model } = this.world.store;
    this.#newRecords();
    for (const cells of this.#cells.values()) for (const cell of cells) cell.held = 0;
    const running = new Map<string, number>();
    for (const [id, hold] of model.holds) {
      const account = this.accounts.get(id);
      if (!account?.grant) continue;
      for (const cell of account.grant.cells) cell.held += hold.nanos;
      account.heldNanos = hold.nanos;
      if (hold.nanos > account.askedNanos)
        this.say("holds", `${id} holds ${hold.nanos} nanos and never asked for more than ${account.askedNanos}`);
      if (model.records.has(id)) this.say("record", `${id} has a record, and runs`);
      running.set(account.organization.id, (running.get(account.organization.id) ?? 0) + 1);
    }
    for (const organization of this.world.scenario.organizations)
      this.#compare(organization, running.get(organization.id) ?? 0, commands, isChecked);
  }

  anchored(organizationId: string, anchor_ms: number): void {
    const anchors = this.#anchors.get(organizationId)!;
    this.#anchors.set(organizationId, withAnchor(anchors, anchor_ms, this.world.store.now_ms));
  }

  calendared(organizationId: string, calendar: Calendar | null): void {
    const anchors = this.#anchors.get(organizationId)!;
    this.#anchors.set(organizationId, withCalendar(anchors, calendar, this.world.store.now_ms) ?? anchors);
  }

  /**
   * Notes that the store carried out an operator's entry, which changes a total by hand, for the first time or once
   * more. It may exceed a limit.
   */
  adjusted(entryId: string, organizationId: string, kind: Cell["kind"], nanos: number, entry: Entry): void {
    const known = this.#adjustments.get(entryId);
    const { now_ms } = this.world.store;
    const organization = this.world.scenario.organizations.find(({ id }) => id === organizationId)!;
    const hasWindow = kind !== "session" || now_ms < this.#openedAt(organization) + session_ms;
    if (hasWindow && (!known || known.entry.lost)) {
      const source = kind === "extra" ? "extra" : "plan";
      const cells = this.#cellsAt(organization, source, this.#sessionAt(organization, now_ms), now_ms);
      const cell = cells.find((one) => one.kind === kind)!;
      const added = Math.max(0 - cell.used, nanos);
      this.#adjustments.set(entryId, { cell, added, entry });
      cell.used += added;
    }
    this.addUp([], false);
  }

  /** Notes that the store carried out an admission, with its answer. */
  decided(account: Account, admit: Admit, answer: LedgerAnswer, entry: Entry): void {
    switch (answer.answer) {
      case "granted":
        this.#granted(account, entry);
        return;
      case "exhausted":
      case "reserved":
        account.refusals.add(answer.answer);
        this.#short(account, admit, answer);
        return;
      case "concurrency": {
        account.refusals.add(answer.answer);
        const { id } = account.organization;
        const { holds } = this.world.store.model;
        const running = [...holds.values()].filter((hold) => hold.facts.organizationId === id).length;
        const { concurrentRequests } = raisedPlan(this.world, id, admit.limits);
        if (running < (concurrentRequests ?? Infinity) && !crowdedBy(answer))
          this.say("refusal", `${account.plan.id} was refused for others that run, and ${running} do`);
      }
    }
  }

  /** Notes that the store has lost its last transactions: records and grants may be gone. */
  crashed(): void {
    const { holds, records } = this.world.store.model;
    this.#cellOfTotal = new Map();
    this.#records = new Map(records);
    for (const cells of this.#cells.values()) for (const cell of cells) cell.used = 0;
    for (const account of this.accounts.values()) {
      const { id } = account.plan;
      const record = records.get(id);
      if (account.settlementKnown && !record) this.say("durable", `${id} was settled, and the store forgot it`);
      if (account.grantKnown && !record && !holds.has(id))
        this.say("durable", `${id} was admitted, and the store forgot it`);
      if (!record && !holds.has(id)) account.grant = null;
      account.checkpoints = account.checkpoints.filter(({ entry }) => !entry.lost);
      const charged = (record?.charged ?? 0) + (records.get(lateIdOf(id))?.charged ?? 0);
      for (const cell of account.grant?.cells ?? []) cell.used += charged;
    }
    for (const { cell, added, entry } of this.#adjustments.values()) if (!entry.lost) cell.used += added;
    this.addUp([], false);
  }

  #newRecords(): void {
    const { records } = this.world.store.model;
    for (const [id, record] of records) {
      const known = this.#records.get(id);
      if (known === record) continue;
      if (known) this.say("record", `${id} has a second record`);
      this.#records.set(id, record);
      const account = this.accounts.get(record.lateOf ?? id);
      if (!account) continue;
      for (const cell of account.grant?.cells ?? []) cell.used += record.charged;
      this.recorded(account, record);
    }
    if (this.#records.size > records.size) this.say("record", "a record is gone");
  }

  /**
   * Compares each total with its limit and its sum. A total that exceeds a lowered limit may stay, but must not rise.
   */
  #compare(organization: OrganizationPlan, running: number, commands: readonly Command[], isChecked: boolean): void {
    const { id } = organization;
    const limits = this.#limits(organization, commands);
    if (isChecked && running > limits.concurrentRequests && running > (this.#running.get(id) ?? 0))
      this.say("limit", `${running} requests run at a time, and the plan says ${limits.concurrentRequests}`);
    this.#running.set(id, running);
    for (const { kind, startsAt_ms, total } of this.world.store.model.windows(id)) {
      const { used, held } = total;
      let cell = this.#cellOfTotal.get(total);
      if (!cell) {
        cell = this.#cell(id, kind, startsAt_ms);
        this.#cellOfTotal.set(total, cell);
      }
      const limit = Math.max(...this.#spansOf(id, kind, startsAt_ms).map((span) => limitIn(limits[kind], span)));
      const rises = used + held > cell.seen || used > cell.seenUsed;
      if (isChecked && rises && (used > limit ? used > cell.seenUsed : used + held > limit && used + held > cell.seen))
        this.say("limit", `the ${kind} has ${used} nanos used and ${held} held, and its limit is ${limit}`);
      cell.seen = used + held;
      cell.seenUsed = used;
      if (used !== cell.used) this.say("sums", `the ${kind} says ${used} used, and its records say ${cell.used}`);
      if (held !== cell.held) this.say("sums", `the ${kind} says ${held} held, and its holds say ${cell.held}`);
    }
  }

  /**
   * The highest of the limits in force and those of the batch: a batch is judged by the limits that it carries, which
   * its node knew when it sent the batch (decisions.ts).
   */
  #limits(
    { id, extra }: OrganizationPlan,
    commands: readonly Command[],
  ): Record<Cell["kind"] | "concurrentRequests", number> {
    const limits: UsageLimits[] = [this.world.office.plan(id)];
    for (const command of commands)
      if (command.organizationId === id && "limits" in command) limits.push(command.limits);
    const raised = limits.map((one) => raisedPlan(this.world, id, one));
    const most = (kind: keyof UsageLimits) => Math.max(...raised.map((one) => one[kind] ?? Infinity));
    return {
      session: most("session"),
      week: most("week"),
      month: most("month"),
      concurrentRequests: most("concurrentRequests"),
      extra: extra.capNanos ?? Infinity,
    };
  }

  #granted(account: Account, entry: Entry): void {
    const { id } = account.plan;
    const hold = this.world.store.model.holds.get(id);
    if (!hold) this.say("record", `${id} was granted, and there is no hold`);
    if (!hold || account.grant) return;
    const { now_ms } = this.world.store;
    const sessionStartsAt_ms = this.#sessionAt(account.organization, now_ms);
    const cells = this.#cellsAt(account.organization, hold.source, sessionStartsAt_ms, now_ms);
    const budgets = this.world.budgets.get(account.organization.id)!;
    const subjects = budgets.subjectsOf(keyIdOf(id), modelIdOf(account.plan)).map((subject) => subject.id);
    account.grant = { at_ms: now_ms, entry, cells, sessionStartsAt_ms, subjects };
    for (const { kind, startsAt_ms } of [...cells, { kind: "session", startsAt_ms: sessionStartsAt_ms } as const]) {
      const said_ms = hold.windows[kind].startsAt_ms;
      if (said_ms !== startsAt_ms)
        this.say("windows", `${id} was admitted to a ${kind} from ${said_ms}, and one from ${startsAt_ms} is in force`);
    }
  }

  #short(account: Account, admit: Admit, { windows, extra, subjects }: Shortage): void {
    const least = admit.inputNanos + costOf(admit.outputTokens_min, admit.prices.output);
    const rooms = windowKinds.map(
      (kind) => (windows[kind].limit ?? Infinity) - windows[kind].used - windows[kind].held,
    );
    const extraRoom = extra.enabled ? (extra.capNanos ?? Infinity) - extra.used - extra.held : 0;
    const room = Math.min(Math.max(Math.min(...rooms), extraRoom), ownRoomOf(subjects));
    if (least <= room)
      this.say("refusal", `${account.plan.id} needs ${least} nanos, was refused, and ${room} were free`);
    const { id } = account.organization;
    const ofPlan = { id, limits: raisedPlan(this.world, id, admit.limits), said: windows };
    const ofOthers = this.world.budgets
      .get(id)!
      .subjectsOf(keyIdOf(admit.requestId), admit.model)
      .map((subject, place) => ({ id: subject.id, limits: subject.limits, said: subjects![place]!.windows }));
    for (const { id, limits, said } of [ofPlan, ...ofOthers])
      for (const kind of windowKinds) this.#limitSaid(admit.organizationId, id, said[kind], limits[kind]);
  }

  #limitSaid(organizationId: string, id: string, { kind, limit: said, startsAt }: WindowReading, whole: number | null) {
    const limit = whole === null ? null : limitIn(whole, this.#spanOf(organizationId, kind, startsAt.getTime()));
    if (said !== limit) this.say("refusal", `${id} has a ${kind} of ${limit}, and the refusal says ${said}`);
  }

  /**
   * All intervals that the window with this beginning has had. It can have two: if the store's clock was set back after
   * the window was opened, and a calendar was set meanwhile, the window may get another interval by that calendar.
   */
  #spansOf(organizationId: string, kind: Cell["kind"], startsAt_ms: number): readonly Interval[] {
    const span = this.#spanOf(organizationId, kind, startsAt_ms);
    if (kind === "session") return [span];
    const cell = this.#cell(organizationId, kind, startsAt_ms);
    if (!cell.spans.includes(span)) cell.spans.push(span);
    return cell.spans;
  }

  /** The interval of the window with this beginning, by the anchors in force. */
  #spanOf(organizationId: string, kind: Cell["kind"], startsAt_ms: number): Interval {
    const anchors = this.#anchors.get(organizationId)!;
    if (kind === "session") return { startsAt_ms, endsAt_ms: startsAt_ms + session_ms };
    const at = kind === "week" ? weekAt : monthAt;
    const known = this.#spans.get(anchors) ?? new Map<string, Interval>();
    this.#spans.set(anchors, known);
    const name = `${at.name} ${startsAt_ms}`;
    const span = known.get(name) ?? at(anchors, startsAt_ms);
    known.set(name, span);
    return span;
  }

  /** The windows to which a request is billed if the store admits it now. */
  #cellsAt({ id }: OrganizationPlan, source: BillingSource, sessionStartsAt_ms: number, now_ms: number): Cell[] {
    const anchors = this.#anchors.get(id)!;
    const month_ms = monthAt(anchors, now_ms).startsAt_ms;
    if (source === "extra") return [this.#cell(id, "extra", month_ms)];
    return [
      this.#cell(id, "session", sessionStartsAt_ms),
      this.#cell(id, "week", weekAt(anchors, now_ms).startsAt_ms),
      this.#cell(id, "month", month_ms),
    ];
  }

  /** The beginning of the session that is open now, or else of the one that an admission would open now. */
  #sessionAt(organization: OrganizationPlan, now_ms: number): number {
    const openedAt_ms = this.#openedAt(organization);
    return now_ms < openedAt_ms + session_ms ? openedAt_ms : now_ms;
  }

  #openedAt({ id, sessionOpenedAt_ms }: OrganizationPlan): number {
    let openedAt_ms = sessionOpenedAt_ms ?? Number.NEGATIVE_INFINITY;
    for (const { organization, grant } of this.accounts.values())
      if (organization.id === id && grant) openedAt_ms = Math.max(openedAt_ms, grant.sessionStartsAt_ms);
    return openedAt_ms;
  }

  #cell(organizationId: string, kind: Cell["kind"], startsAt_ms: number): Cell {
    const cells = this.#cells.get(organizationId) ?? [];
    this.#cells.set(organizationId, cells);
    const known = cells.find((one) => one.kind === kind && one.startsAt_ms === startsAt_ms);
    if (known) return known;
    const made = { kind, startsAt_ms, used: 0, held: 0, seen: 0, seenUsed: 0, spans: [] };
    cells.push(made);
    return made;
  }
}
