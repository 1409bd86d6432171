/**
 * The room of one engine, as this process counts it: how many requests and tokens it may have in flight, what of that is
 * kept for organizations that have little there, and who waits. Pure: instants are arguments.
 */
import type { Capacity } from "../upstream/target.ts";
import { type Claim, FairQueue, type Ticket } from "./fair-queue.ts";

/** Whoever waits, told once that there is room: it is in flight from then on. */
export interface Queued extends Claim {
  served(from: Slots, room: Room): void;
}

/** A part of an engine's room, and what is in flight there. */
export interface Room {
  requests: number;
  tokens: number;
}

/** How much a new interval between two ends counts. */
const pace_share = 0.1;

export class Slots {
  #capacity: Capacity;
  readonly common: Room = { requests: 0, tokens: 0 };
  readonly reserved: Room = { requests: 0, tokens: 0 };
  readonly #queue = new FairQueue<Queued>();
  /** Between two ends of requests while others wait: a moving mean, in milliseconds. */
  #interval_ms: number | null = null;
  /** Of the last such end, or since when others wait. */
  #last_ms = 0;

  constructor(capacity: Capacity) {
    this.#capacity = capacity;
    this.capacity = capacity;
  }

  get capacity(): Capacity {
    return this.#capacity;
  }

  /** Whoever has less there than is kept, may have what is kept. */
  set capacity(capacity: Capacity) {
    this.#capacity = capacity;
    const { concurrent_max } = capacity;
    this.#queue.quiet_max = Math.max(1, concurrent_max === null ? 0 : this.#part(concurrent_max, true, 1));
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** Nothing is in flight there, and nobody waits. */
  get isIdle(): boolean {
    return this.common.requests === 0 && this.reserved.requests === 0 && this.waiting === 0;
  }

  /** Where it may go at once, past nobody whose turn it is. */
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

  /** One that was begun in this room is over. */
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

  /** Who waits already may have as many places as are still free: so there is always one for somebody else. */
  mayWait({ organizationId }: Claim): boolean {
    return this.#queue.waitingOf(organizationId) < this.capacity.queue_max - this.#queue.length;
  }

  /** The answer is how to give the place up. */
  wait(one: Queued, now_ms: number): () => void {
    if (this.#queue.length === 0) this.#last_ms = now_ms;
    const ticket = this.#queue.push(one);
    return () => {
      this.#queue.remove(ticket);
      // Who stood behind a request that was too large may fit.
      this.serve();
    };
  }

  /** How long a request that came now would wait, by what was seen of late; null before anything was. */
  wait_ms(claim: Claim, now_ms: number): number | null {
    const since_ms = this.#queue.length === 0 ? 0 : now_ms - this.#last_ms;
    if (this.#interval_ms === null && since_ms === 0) return null;
    const own = this.#queue.waitingOf(claim.organizationId);
    const turns = own === 0 ? 1 : (own + 1) * this.#queue.turnsTo(claim);
    return Math.max(since_ms, this.#interval_ms ?? 0) * turns;
  }

  /** Whoever is next, for as long as there is room for them. */
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
    // One that is larger than all the room has it to itself.
    return tokens_max === null || room.tokens + tokens <= tokens_max || (!isReserved && room.requests === 0);
  }

  /** What is kept is rounded up; so much is left to all. */
  #part(whole: number, isReserved: boolean, left_min: number): number {
    const reserved = Math.min(Math.ceil((whole * this.capacity.reserved_percent) / 100), whole - left_min);
    return isReserved ? reserved : whole - reserved;
  }
}
