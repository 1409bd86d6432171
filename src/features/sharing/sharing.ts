/**
 * Exchanges slots with the store for each engine whose limit the fleet shares: at intervals, and without delay if a
 * request waits or if there are slots to give back for which another process waits. One exchange at a time for each
 * engine.
 */

import type { Sharing } from "../../core/routing/queues.ts";
import type { Slots } from "../../core/routing/slots.ts";
import type { EngineSlots } from "../../core/store/engine-slots.ts";
import { type Clock, idleClock } from "../../core/time/clock.ts";
import { Share } from "./share.ts";

export interface SharingParts {
  store: EngineSlots;
  newName(): string;
  clock?: Clock;
}

export interface FleetSharing extends Sharing {
  leaveAll(): Promise<void>;
}

/**
 * The interval of exchanges for one engine, with up to ten processes. With more processes, each makes fewer exchanges,
 * so that the store can bear the sum.
 */
const usual_ms = 50;
const usual_processes = 10;
/** The interval of exchanges while requests wait. */
const short_ms = 20;
/** The factor of the interval for an engine at which the process has no request. */
const idle_factor = 4;
/** The longest interval: slots are lost after `slots_fence_ms` without an answer. */
const interval_ms_max = 1_000;
const failures_counted_max = 10;
/** The least time between two exchanges. */
const rest_ms = 4;

export function sharing({ store, newName, clock = idleClock() }: SharingParts): FleetSharing {
  const open = new Map<string, Exchanges>();
  async function leave(engine: string): Promise<void> {
    const one = open.get(engine);
    open.delete(engine);
    await one?.stop();
  }
  return {
    join(engine, slots) {
      if (open.has(engine)) return;
      open.set(engine, new Exchanges({ store, engine, slots, name: newName(), clock }));
    },
    leave,
    leaveAll: async () => void (await Promise.all([...open.keys()].map(leave))),
  };
}

interface ExchangesParts {
  store: EngineSlots;
  engine: string;
  slots: Slots;
  name: string;
  clock: Clock;
}

class Exchanges {
  readonly #parts: ExchangesParts;
  readonly #share: Share;
  #running: Promise<void> | null = null;
  /** Whether a request has begun to wait, or has ended, since the running exchange was sent. */
  #isDue = false;
  #isStopped = false;
  #failures = 0;
  #begun_ms = Number.NEGATIVE_INFINITY;
  #cancel: () => void = () => {};

  constructor(parts: ExchangesParts) {
    this.#parts = parts;
    const { slots, name, clock } = parts;
    this.#share = new Share(name, slots.limits);
    slots.share({
      most: () => this.#share.most(clock.now_ms()),
      isApart: () => this.#share.isApart(clock.now_ms()),
      processes: () => this.#share.processes,
      waits: () => this.#soon(),
      ended: () => {
        if (this.#share.ended(slots.running)) this.#soon();
      },
    });
    this.#begin();
  }

  /**
   * Gives back all slots, so that other processes get them immediately. If the store does not answer, they get them
   * when the lease ends.
   */
  async stop(): Promise<void> {
    const { store, engine, name } = this.#parts;
    this.#isStopped = true;
    this.#cancel();
    await this.#running;
    await store.leave(engine, name).catch(() => {});
  }

  #soon(): void {
    if (this.#isDue || this.#isStopped) return;
    this.#isDue = true;
    if (this.#running === null) this.#plan(this.#soonest_ms);
  }

  #plan(interval_ms: number): void {
    this.#cancel();
    const { clock } = this.#parts;
    const wait_ms = Math.max(0, this.#begun_ms + interval_ms - clock.now_ms());
    this.#cancel = clock.after(wait_ms, () => this.#begin());
  }

  #begin(): void {
    this.#running = this.#exchange().finally(() => {
      this.#running = null;
      if (!this.#isStopped) this.#plan(this.#isDue ? this.#soonest_ms : this.#interval_ms());
    });
  }

  async #exchange(): Promise<void> {
    const { store, engine, slots, clock } = this.#parts;
    this.#isDue = false;
    this.#begun_ms = clock.now_ms();
    this.#share.limits = slots.limits;
    try {
      const granted = await store.exchange(engine, this.#share.ask(slots.use, clock.now_ms()));
      this.#share.granted(granted, slots.use);
      this.#failures = 0;
    } catch {
      this.#share.failed(clock.now_ms());
      this.#failures = Math.min(this.#failures + 1, failures_counted_max);
    }
    if (!this.#isStopped) slots.serve();
  }

  /**
   * The least time between two exchanges, also if one is due immediately. It is longer after failures, to spare the
   * store.
   */
  get #soonest_ms(): number {
    return this.#failures === 0 ? rest_ms : this.#interval_ms();
  }

  #interval_ms(): number {
    const { slots } = this.#parts;
    const many = Math.max(1, this.#share.processes / usual_processes) * (slots.isIdle ? idle_factor : 1);
    const usual = many * (slots.waiting > 0 ? short_ms : usual_ms);
    // A store that does not answer in time has too much to do.
    return Math.min(usual * 2 ** this.#failures, interval_ms_max);
  }
}
