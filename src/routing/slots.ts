/**
 * The room at one engine, as this process counts it: how many requests and tokens may be in flight, which part is
 * reserved for organizations that have little in flight, and who waits. Pure: instants are arguments.
 */
import type { Capacity } from "../upstream/target.ts";
import { type Claim, FairQueue, type Ticket } from "./fair-queue.ts";

/** A request that waits. `served` is called once, when it has a slot. */
export interface Queued extends Claim {
  served(from: Slots, room: Room): void;
}

/** The requests and tokens in flight in one part of an engine's capacity. */
export interface Room {
  requests: number;
  tokens: number;
}

/** The weight of a new interval in the moving mean. */
const pace_share = 0.1;

export class Slots {
  #capacity: Capacity;
  readonly common: Room = { requests: 0, tokens: 0 };
  readonly reserved: Room = { requests: 0, tokens: 0 };
  readonly #queue = new FairQueue<Queued>();
  /** A moving mean of the milliseconds between two ends of requests while others wait. */
  #interval_ms: number | null = null;
  /** The time of the last such end, or the time since which others wait. */
  #last_ms = 0;

  constructor(capacity: Capacity) {
    this.#capacity = capacity;
    this.capacity = capacity;
  }

  get capacity(): Capacity {
    return this.#capacity;
  }

  /** An organization with fewer requests running than are reserved may use the reserved part. */
  set capacity(capacity: Capacity) {
    this.#capacity = capacity;
    const { concurrent_max } = capacity;
    this.#queue.quiet_max = Math.max(1, concurrent_max === null ? 0 : this.#part(concurrent_max, true, 1));
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** Whether nothing is in flight and nothing waits. */
  get isIdle(): boolean {
    return this.common.requests === 0 && this.reserved.requests === 0 && this.waiting === 0;
  }

  /**
   * The part in which a request may start at once without passing a request whose turn it is; null if there is none.
   */
  roomFor(claim: Claim): Room | null {
    if (this.#queue.length === 0 && this.#fits(this.common, claim)) return this.common;
    if (!this.#queue.isQuiet(claim.organizationId) || this.#queue.nextQuiet()) return null;
    return this.#fits(this.reserved, claim) ? this.reserved : null;
  }

  begin(claim: Claim, room: Room): void {
    room.requests += 1;
    room.tokens += claim.tokens;
    this.#queue.begun(claim.organizationId);
  }

  /** Ends a request that was started in this part. */
  end(claim: Claim, room: Room, now_ms: number): void {
    room.requests -= 1;
    room.tokens -= claim.tokens;
    this.#queue.ended(claim.organizationId);
    if (this.#queue.length === 0) return;
    const interval_ms = now_ms - this.#last_ms;
    this.#last_ms = now_ms;
    const mean_ms = this.#interval_ms ?? interval_ms;
    this.#interval_ms = mean_ms + pace_share * (interval_ms - mean_ms);
    this.serve();
  }

  /**
   * An organization may have as many requests waiting as there are free places, so that one is always left for another.
   */
  mayWait({ organizationId }: Claim): boolean {
    return this.#queue.waitingOf(organizationId) < this.capacity.queue_max - this.#queue.length;
  }

  /** Puts a request into the queue. Returns a function that takes it out. */
  wait(one: Queued, now_ms: number): () => void {
    if (this.#queue.length === 0) this.#last_ms = now_ms;
    const ticket = this.#queue.push(one);
    return () => {
      this.#queue.remove(ticket);
      // The next request may fit where this one was too large.
      this.serve();
    };
  }

  /** The expected wait of a request that joins now, from the latest ends; null before there were any. */
  wait_ms(claim: Claim, now_ms: number): number | null {
    const since_ms = this.#queue.length === 0 ? 0 : now_ms - this.#last_ms;
    if (this.#interval_ms === null && since_ms === 0) return null;
    const own = this.#queue.waitingOf(claim.organizationId);
    const turns = own === 0 ? 1 : (own + 1) * this.#queue.turnsTo(claim);
    return Math.max(since_ms, this.#interval_ms ?? 0) * turns;
  }

  /** Serves the next requests for as long as there is room. */
  serve(): void {
    for (;;) {
      const next = this.#queue.next();
      const quiet = this.#queue.nextQuiet();
      if (next && this.#fits(this.common, next.spot.value)) this.#served(next, this.common);
      else if (quiet && this.#fits(this.reserved, quiet.spot.value)) this.#served(quiet, this.reserved);
      else return;
    }
  }

  #served(ticket: Ticket<Queued>, room: Room): void {
    const one = ticket.spot.value;
    this.#queue.take(ticket);
    this.begin(one, room);
    one.served(this, room);
  }

  #fits(room: Room, { tokens }: Claim): boolean {
    const { concurrent_max, tokens_in_flight_max } = this.capacity;
    const isReserved = room === this.reserved;
    const requests_max = concurrent_max === null ? null : this.#part(concurrent_max, isReserved, 1);
    const tokens_max = tokens_in_flight_max === null ? null : this.#part(tokens_in_flight_max, isReserved, 0);
    if (isReserved && this.capacity.reserved_percent === 0) return false;
    if (requests_max !== null && room.requests >= requests_max) return false;
    // A request that is larger than the whole part runs alone in it.
    return tokens_max === null || room.tokens + tokens <= tokens_max || (!isReserved && room.requests === 0);
  }

  /** The size of one part. The reserved part is rounded up, but `left_min` remains for everybody. */
  #part(whole: number, isReserved: boolean, left_min: number): number {
    const reserved = Math.min(Math.ceil((whole * this.capacity.reserved_percent) / 100), whole - left_min);
    return isReserved ? reserved : whole - reserved;
  }
}
