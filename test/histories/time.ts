// The simulated time of a history (a simulated run, history.ts): one queue of events at whole milliseconds, run one
// after the other, and each node's own clock, which is derived from it. The node's side of metering runs unchanged on
// such a clock.

import { drainMicrotasks } from "bun:jsc";
import type { Clock } from "../../src/core/time/clock.ts";

export interface Appointment {
  at_ms: number;
  order: number;
  run: (() => void) | null;
}

/** How often the nodes' clocks may be read within one turn. */
const readings_max = 20_000;

export class Time {
  now_ms: number;
  /** The number of events that were run so far. */
  steps = 0;
  /** A binary heap of events, the earliest first; of two at the same instant, the one that was created first. */
  readonly #heap: Appointment[] = [];
  #made = 0;
  #readings = 0;

  constructor(readonly began_ms: number) {
    this.now_ms = began_ms;
  }

  in(delay_ms: number, run: () => void): Appointment {
    return this.at(this.now_ms + delay_ms, run);
  }

  at(at_ms: number, run: () => void): Appointment {
    const made = { at_ms: Math.max(at_ms, this.now_ms), order: this.#made++, run };
    this.#rise(made);
    return made;
  }

  /** Runs the next event, and lets all promises settle that it resolves. Returns false if there is no event. */
  step(): boolean {
    for (let next = this.#take(); next; next = this.#take()) {
      if (!next.run) continue;
      this.now_ms = next.at_ms;
      this.turn(next.run);
      return true;
    }
    return false;
  }

  /** Runs one turn of an event loop. */
  turn(run: () => void): void {
    this.steps += 1;
    this.#readings = 0;
    run();
    drainMicrotasks();
  }

  /**
   * Whether a turn of the event loop would never have ended: it read the time `readings_max` times, and then got an
   * error.
   */
  isStuck = false;

  /** Reads the time; throws if it was read too often within this turn. */
  read(): number {
    this.#readings += 1;
    if (this.#readings < readings_max) return this.now_ms;
    this.isStuck = true;
    this.#readings = 0;
    throw new Error("a turn of the event loop does not end");
  }

  #rise(made: Appointment): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(made);
    while (index > 0) {
      const above = (index - 1) >> 1;
      if (!before(made, heap[above]!)) break;
      heap[index] = heap[above]!;
      index = above;
    }
    heap[index] = made;
  }

  #take(): Appointment | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (!first || !last || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let below = 2 * index + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && before(heap[below + 1]!, heap[below]!)) below += 1;
      if (!before(heap[below]!, last)) break;
      heap[index] = heap[below]!;
      index = below;
    }
    heap[index] = last;
    return first;
  }
}

function before(one: Appointment, other: Appointment): boolean {
  return one.at_ms === other.at_ms ? one.order < other.order : one.at_ms < other.at_ms;
}

/** The kinds of work that a process runs when it wakes: its timers, and the messages that arrived meanwhile. */
type Channel = "timers" | "arrivals";
interface Due {
  run: () => void;
  cancelled: boolean;
}

export interface NodeClockOptions {
  /** The reading of the clock at the beginning: monotonic clocks start anywhere. */
  offset_ms: number;
  /** The speed of the clock: 1.001 gains a second in a thousand. */
  rate: number;
  /** Whether a process that wakes serves its sockets before its timers. */
  arrivalsFirst: boolean;
}

/**
 * A node's own clock: work that became due while the node was frozen runs when it wakes, and never on a crashed node.
 */
export class NodeClock implements Clock {
  crashed = false;
  frozenUntil_ms = 0;
  readonly #late: Record<Channel, Due[]> = { timers: [], arrivals: [] };

  constructor(
    readonly time: Time,
    readonly options: NodeClockOptions,
  ) {}

  now_ms(): number {
    return this.options.offset_ms + (this.time.read() - this.time.began_ms) * this.options.rate;
  }

  get runs(): boolean {
    return !this.crashed && this.time.now_ms >= this.frozenUntil_ms;
  }

  after(delay_ms: number, run: () => void): () => void {
    return this.#make(Math.max(1, Math.ceil(delay_ms / this.options.rate)), run, "timers");
  }

  /** Delivers an event from outside after `delay_ms` of the history's time, whatever the node's clock shows. */
  arrive(delay_ms: number, run: () => void): () => void {
    return this.#make(delay_ms, run, "arrivals");
  }

  freeze(for_ms: number): void {
    this.frozenUntil_ms = Math.max(this.frozenUntil_ms, this.time.now_ms + for_ms);
    this.time.at(this.frozenUntil_ms, () => this.#wake());
  }

  #make(delay_ms: number, run: () => void, channel: Channel): () => void {
    const due: Due = { run, cancelled: false };
    const made = this.time.in(delay_ms, () => {
      if (this.runs) run();
      else if (!this.crashed) this.#late[channel].push(due);
    });
    return () => {
      made.run = null;
      due.cancelled = true;
    };
  }

  #wake(): void {
    if (!this.runs) return;
    const { timers, arrivals } = this.#late;
    const late = this.options.arrivalsFirst ? [arrivals, timers] : [timers, arrivals];
    const due = late.flatMap((channel) => channel.splice(0));
    for (const { run, cancelled } of due) if (!cancelled && !this.crashed) this.time.turn(run);
  }
}
