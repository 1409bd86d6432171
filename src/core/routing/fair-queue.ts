/**
 * Decides which of the requests that wait for an engine is next. Organizations take turns by weighted deficit round
 * robin, counted in tokens. Each turn gives an organization a quantum of tokens. If its requests take more, it pays the
 * excess back before its next turn.
 *
 * An organization that had nothing waiting goes ahead of the others once. Organizations of a better priority go ahead
 * of all others. Each step costs the same however many requests wait: docs/routing.md, When engines are full. Pure.
 */
export interface Share {
  /** The weight of the organization's share of tokens against other waiting organizations. */
  weight: number;
  /** Organizations with a lower number are served first. */
  priority: number;
}

/** A request that may wait. `tokens`: the load that the request puts on its engine. */
export interface Claim {
  readonly organizationId: string;
  readonly tokens: number;
  readonly share: Share;
}

/** The tokens that one turn gives to an organization of weight 1. */
export const quantum_tokens = 4096;

/** The state of one organization, from its first wait until it has paid back the tokens that it took in advance. */
interface Flow<One> {
  organizationId: string;
  share: Share;
  /** The tokens that the organization may still spend before its next turn. */
  credit: number;
  waiting: Line<One>;
  level: Level<One>;
  /** The organization's position in the queue of new organizations (`fresh`), or in the queue of the others. */
  turn: Spot<Flow<One>>;
  /** The organization's position in the queue of quiet organizations (`#quiet`); null if it is not in that queue. */
  quiet: Spot<Flow<One>> | null;
}

interface Level<One> {
  priority: number;
  fresh: Line<Flow<One>>;
  others: Line<Flow<One>>;
  waiting: number;
}

export interface Ticket<One> {
  spot: Spot<One>;
  flow: Flow<One>;
}

export class FairQueue<One extends Claim> {
  #flows = new Map<string, Flow<One>>();
  /** The waiting requests by priority, the best first. */
  #levels: Level<One>[] = [];
  /** The organizations with waiting requests and few running requests (fewer than `quiet_max`). */
  #quiet = new Line<Flow<One>>();
  #running = new Map<string, number>();
  /** The sum of the weights of all organizations that wait. */
  #weights = 0;
  length = 0;
  /** An organization with fewer running requests than this is quiet. */
  quiet_max = 1;

  /** The number of quiet organizations that wait. */
  get quietLength(): number {
    return this.#quiet.length;
  }

  get weights(): number {
    return this.#weights;
  }

  push(one: One): Ticket<One> {
    const flow = this.#flowOf(one);
    const spot = flow.waiting.push(one);
    if (flow.waiting.length === 1) this.#weights += flow.share.weight;
    flow.level.waiting += 1;
    this.length += 1;
    if (!flow.quiet && this.isQuiet(one.organizationId)) flow.quiet = this.#quiet.push(flow);
    return { spot, flow };
  }

  /** Removes a request that gave up waiting. It is not charged for its tokens. */
  remove({ spot, flow }: Ticket<One>): void {
    if (spot.line === null) return;
    flow.waiting.remove(spot);
    flow.level.waiting -= 1;
    this.length -= 1;
    if (flow.waiting.length === 0) {
      this.#weights -= flow.share.weight;
      this.#leavesQuiet(flow);
    }
    // Once no request waits, the tokens that organizations have to pay back are forgotten.
    if (this.length === 0) this.#forget();
  }

  /** Removes a request that is served, and charges its organization for its tokens. */
  take(ticket: Ticket<One>): void {
    ticket.flow.credit -= ticket.spot.value.tokens;
    this.remove(ticket);
  }

  /**
   * The next request. The same request stays the next until it is taken, unless an organization that had none waiting
   * adds one.
   */
  next(): Ticket<One> | null {
    const level = this.#levels.find(({ waiting }) => waiting > 0);
    if (!level) return null;
    for (;;) {
      const isFresh = level.fresh.length > 0;
      const { value: flow } = (isFresh ? level.fresh.first : level.others.first)!;
      if (flow.credit <= 0) {
        flow.credit += quantum_tokens * flow.share.weight;
        this.#turnsOver(flow);
      } else if (flow.waiting.first) {
        return { spot: flow.waiting.first, flow };
      } else if (isFresh) {
        // The organization has had its turn. The organization does not count as new again before the others have had
        // their turns.
        this.#turnsOver(flow);
      } else {
        level.others.remove(flow.turn);
        this.#flows.delete(flow.organizationId);
      }
    }
  }

  /** The next request of the quiet organization that has waited longest; null if no quiet organization waits. */
  nextQuiet(): Ticket<One> | null {
    const flow = this.#quiet.first?.value;
    return flow ? { spot: flow.waiting.first!, flow } : null;
  }

  begun(organizationId: string): void {
    this.#running.set(organizationId, (this.#running.get(organizationId) ?? 0) + 1);
    const flow = this.#flows.get(organizationId);
    if (flow && !this.isQuiet(organizationId)) this.#leavesQuiet(flow);
  }

  ended(organizationId: string): void {
    const left = this.#running.get(organizationId)! - 1;
    if (left > 0) this.#running.set(organizationId, left);
    else this.#running.delete(organizationId);
    const flow = this.#flows.get(organizationId);
    if (!flow || flow.quiet || flow.waiting.length === 0 || !this.isQuiet(organizationId)) return;
    flow.quiet = this.#quiet.push(flow);
  }

  isQuiet(organizationId: string): boolean {
    return (this.#running.get(organizationId) ?? 0) < this.quiet_max;
  }

  waitingOf(organizationId: string): number {
    return this.#flows.get(organizationId)?.waiting.length ?? 0;
  }

  /**
   * The sum of the weights of all waiting organizations, divided by the weight of this one. While all of them wait,
   * this many tokens are served for each token of this one.
   */
  turnsTo({ organizationId, share }: Claim): number {
    const own = this.waitingOf(organizationId) > 0 ? 0 : share.weight;
    return (this.#weights + own) / share.weight;
  }

  #flowOf({ organizationId, share }: One): Flow<One> {
    const known = this.#flows.get(organizationId);
    if (known) {
      if (known.waiting.length === 0) this.#shares(known, share);
      return known;
    }
    const level = this.#levelOf(share.priority);
    const flow = { organizationId, share, credit: quantum_tokens * share.weight, waiting: new Line<One>(), level };
    const placed: Flow<One> = Object.assign(flow, { turn: null as never, quiet: null });
    placed.turn = level.fresh.push(placed);
    this.#flows.set(organizationId, placed);
    return placed;
  }

  /** Sets the organization's share (weight and priority), which may have changed with its plan. */
  #shares(flow: Flow<One>, share: Share): void {
    flow.share = share;
    if (flow.level.priority === share.priority) return;
    flow.turn.line!.remove(flow.turn);
    flow.level = this.#levelOf(share.priority);
    flow.turn = flow.level.others.push(flow);
  }

  #levelOf(priority: number): Level<One> {
    const known = this.#levels.find((level) => level.priority === priority);
    if (known) return known;
    const level = { priority, fresh: new Line<Flow<One>>(), others: new Line<Flow<One>>(), waiting: 0 };
    this.#levels = [...this.#levels, level].sort((one, other) => one.priority - other.priority);
    return level;
  }

  #turnsOver(flow: Flow<One>): void {
    flow.turn.line!.remove(flow.turn);
    flow.turn = flow.level.others.push(flow);
  }

  #leavesQuiet(flow: Flow<One>): void {
    if (flow.quiet) this.#quiet.remove(flow.quiet);
    flow.quiet = null;
  }

  #forget(): void {
    this.#flows = new Map();
    this.#levels = [];
    this.#weights = 0;
  }
}

/** A member of a queue whose members can be removed at any position in constant time. */
interface Spot<Value> {
  readonly value: Value;
  /** The queue that contains this member; null once the member has been removed. */
  line: Line<Value> | null;
  before: Spot<Value> | null;
  behind: Spot<Value> | null;
}

class Line<Value> {
  first: Spot<Value> | null = null;
  #last: Spot<Value> | null = null;
  length = 0;

  push(value: Value): Spot<Value> {
    const spot: Spot<Value> = { value, line: this, before: this.#last, behind: null };
    if (this.#last) this.#last.behind = spot;
    else this.first = spot;
    this.#last = spot;
    this.length += 1;
    return spot;
  }

  /** Removes a member. Does nothing if it was removed before. */
  remove(spot: Spot<Value>): void {
    if (spot.line !== this) return;
    if (spot.before) spot.before.behind = spot.behind;
    else this.first = spot.behind;
    if (spot.behind) spot.behind.before = spot.before;
    else this.#last = spot.before;
    spot.line = null;
    this.length -= 1;
  }
}
