/**
 * The slots at one engine, as this process counts them: how many requests and tokens may be in flight, which part of
 * this capacity is reserved for organizations that have little in flight, and which requests wait. If the fleet shares
 * the engine's limit, this process has a share of it. Pure: instants are arguments.
 */

import type { SlotCounts } from "../store/engine-slots.ts";
import type { Capacity } from "../upstream/target.ts";
import { type Claim, FairQueue, type Ticket } from "./fair-queue.ts";

/** A request that waits. `served` is called once, when it has a slot. */
export interface Queued extends Claim {
  served(from: Slots, room: Load): void;
}

/** The requests and tokens in flight in one part of an engine's capacity. */
export interface Load {
  requests: number;
  tokens: number;
}

/** This process's share of a limit that the processes of the fleet share. */
export interface Shared {
  /** The most requests that this process may have in flight in each part of the capacity. */
  most(): SlotCounts;
  /** Whether the store through which the fleet shares the limit does not answer. */
  isApart(): boolean;
  processes(): number;
  /** Called when a request begins to wait. `ended` is called when a request has ended. */
  waits(): void;
  ended(): void;
}

/** The weight of the latest interval in the moving mean. */
const pace_share = 0.1;

export interface Use {
  running: SlotCounts;
  waiting: SlotCounts;
  /** The sum of the weights of the organizations with waiting requests. */
  weight: number;
}

export class Slots {
  #capacity: Capacity;
  readonly common: Load = { requests: 0, tokens: 0 };
  readonly reserved: Load = { requests: 0, tokens: 0 };
  readonly #queue = new FairQueue<Queued>();
  /** A moving mean of the milliseconds between the ends of two requests while others wait. */
  #interval_ms: number | null = null;
  /**
   * The later of two instants: when a request last ended while others waited, and when the first request joined the
   * empty queue.
   */
  #last_ms = 0;
  #shared: Shared | null = null;

  constructor(capacity: Capacity) {
    this.#capacity = capacity;
    this.capacity = capacity;
  }

  get capacity(): Capacity {
    return this.#capacity;
  }

  set capacity(capacity: Capacity) {
    this.#capacity = capacity;
    this.#setQuiet();
  }

  /** Sets whether the fleet shares the limit; null: this process has all of it. */
  share(shared: Shared | null): void {
    this.#shared = shared;
    this.#setQuiet();
  }

  get isShared(): boolean {
    return this.#shared !== null;
  }

  get isApart(): boolean {
    return this.#shared?.isApart() ?? false;
  }

  /** The most requests that may be in flight now. Null: no limit. */
  get requests_max(): number | null {
    if (this.#capacity.concurrent_max === null) return null;
    const { common, reserved } = this.#shared?.most() ?? this.limits;
    return common + reserved;
  }

  /**
   * The limit of requests in each part of the capacity. If the fleet shares the limit, this is the limit of the whole
   * fleet.
   */
  get limits(): SlotCounts {
    const whole = this.#capacity.concurrent_max ?? 0;
    return { common: this.#part(whole, false, 1), reserved: this.#part(whole, true, 1) };
  }

  get running(): SlotCounts {
    return { common: this.common.requests, reserved: this.reserved.requests };
  }

  get use(): Use {
    const { length: common, quietLength: reserved, weights: weight } = this.#queue;
    return { running: this.running, waiting: { common, reserved }, weight };
  }

  get waiting(): number {
    return this.#queue.length;
  }

  get isIdle(): boolean {
    return this.common.requests === 0 && this.reserved.requests === 0 && this.waiting === 0;
  }

  /**
   * The part of the capacity in which a request may start at once without overtaking a request whose turn it is; null
   * if there is none.
   */
  roomFor(claim: Claim): Load | null {
    if (this.#queue.length === 0 && this.#fits(this.common, claim)) return this.common;
    if (!this.#queue.isQuiet(claim.organizationId) || this.#queue.nextQuiet()) return null;
    return this.#fits(this.reserved, claim) ? this.reserved : null;
  }

  begin(claim: Claim, room: Load): void {
    room.requests += 1;
    room.tokens += claim.tokens;
    this.#queue.begun(claim.organizationId);
  }

  end(claim: Claim, room: Load, now_ms: number): void {
    if (this.#queue.length > 0) {
      this.#interval_ms = this.#meanWith(now_ms - this.#last_ms);
      this.#last_ms = now_ms;
    }
    room.requests -= 1;
    room.tokens -= claim.tokens;
    this.#queue.ended(claim.organizationId);
    this.#shared?.ended();
    this.serve();
  }

  /**
   * Whether the organization may queue one more request. It may have at most as many waiting requests as the queue has
   * free places, so that a place is always left for another organization.
   */
  mayWait({ organizationId }: Claim): boolean {
    return this.#queue.waitingOf(organizationId) < this.capacity.queue_max - this.#queue.length;
  }

  /** Puts a request into the queue. Returns a function that takes it out. */
  wait(one: Queued, now_ms: number): () => void {
    if (this.#queue.length === 0) this.#last_ms = now_ms;
    const ticket = this.#queue.push(one);
    this.#shared?.waits();
    return () => {
      this.#queue.remove(ticket);
      // The request that is next now may fit into capacity that was too small for the removed request.
      this.serve();
    };
  }

  /**
   * The expected wait of a request that joins the queue now, estimated from the latest intervals between the ends of
   * requests; null if there is nothing to estimate from.
   */
  wait_ms(claim: Claim, now_ms: number): number | null {
    const since_ms = this.#queue.length === 0 ? 0 : now_ms - this.#last_ms;
    if (this.#interval_ms === null && since_ms === 0) return null;
    const own = this.#queue.waitingOf(claim.organizationId);
    const turns = own === 0 ? 1 : (own + 1) * this.#queue.turnsTo(claim);
    // An interval that has not ended counts with its length so far. A long pause of the engine thus lengthens the
    // estimate once, and is not multiplied by the number of requests that have to end first.
    return Math.max(this.#interval_ms ?? 0, this.#meanWith(since_ms)) * turns;
  }

  /**
   * The moving mean as it would be if an interval of this length ended now. Before any request has ended, all requests
   * in flight are assumed to have begun together, and to end together.
   */
  #meanWith(interval_ms: number): number {
    if (this.#interval_ms === null) return interval_ms / Math.max(1, this.common.requests + this.reserved.requests);
    return this.#interval_ms + pace_share * (interval_ms - this.#interval_ms);
  }

  serve(): void {
    if (this.#shared) this.#setQuiet();
    for (;;) {
      const next = this.#queue.next();
      const quiet = this.#queue.nextQuiet();
      if (next && this.#fits(this.common, next.spot.value)) this.#served(next, this.common);
      else if (quiet && this.#fits(this.reserved, quiet.spot.value)) this.#served(quiet, this.reserved);
      else return;
    }
  }

  #served(ticket: Ticket<Queued>, room: Load): void {
    const one = ticket.spot.value;
    this.#queue.take(ticket);
    this.begin(one, room);
    one.served(this, room);
  }

  #fits(room: Load, { tokens }: Claim): boolean {
    const { concurrent_max, tokens_in_flight_max } = this.capacity;
    const isReserved = room === this.reserved;
    const requests_max = concurrent_max === null ? null : this.#requestsMost(concurrent_max, isReserved);
    const tokens_max = tokens_in_flight_max === null ? null : this.#part(tokens_in_flight_max, isReserved, 0);
    if (isReserved && this.capacity.reserved_percent === 0) return false;
    if (requests_max !== null && room.requests >= requests_max) return false;
    // A request with more tokens than the whole common part allows may run there if no other request runs there.
    return tokens_max === null || room.tokens + tokens <= tokens_max || (!isReserved && room.requests === 0);
  }

  #requestsMost(whole: number, isReserved: boolean): number {
    if (!this.#shared) return this.#part(whole, isReserved, 1);
    const most = this.#shared.most();
    return isReserved ? most.reserved : most.common;
  }

  /**
   * Updates which organizations are quiet: an organization with fewer running requests than are reserved may use the
   * reserved part. If the fleet shares the limit, each process compares with its own share of the reserve.
   */
  #setQuiet(): void {
    const reserved = this.#capacity.concurrent_max === null ? 0 : this.limits.reserved;
    this.#queue.quiet_max = Math.max(1, Math.ceil(reserved / (this.#shared?.processes() ?? 1)));
  }

  /**
   * The size of the reserved or of the common part of a limit, `whole`. The reserved part is rounded up, but at least
   * `left_min` remains for the common part.
   */
  #part(whole: number, isReserved: boolean, left_min: number): number {
    const reserved = Math.min(Math.ceil((whole * this.capacity.reserved_percent) / 100), whole - left_min);
    return isReserved ? reserved : whole - reserved;
  }
}
