/**
 * The pauses of all sockets of engines: while the process is busy, what a socket receives waits a little, so that tokens
 * share a wake, a read and a write. Sockets whose pauses end at about the same time share a timer, and are read in one
 * poll: docs/performance.md, Pauses under load.
 */
import { readFileSync } from "node:fs";
import { type Clock, idleClock } from "../../time/clock.ts";
import { type PauseBounds, PauseLevel } from "./pause-level.ts";

export interface PausedLine {
  /** The pause has ended. The line may have ended it before. */
  pauseOver(pause: Pause): void;
}

/** A pause that the sockets that were paused at about the same time share. */
export interface Pause {
  readonly lines: PausedLine[];
}

/** How often the load is measured. */
const look_ms = 250;
/** The number of timers at a time, and the shortest that is worth its system calls. */
const timers = 8;
const wait_ms_min = 5;

export class ReadPauses {
  readonly #level: PauseLevel;
  readonly #clock: Clock;
  readonly #busy_ms: () => number;
  readonly #pauses = new Map<number, Pause>();
  /** How late the last timer was. Received bytes have waited that long already. */
  #late_ms = 0;
  #cancel: () => void = () => {};

  constructor(bounds: PauseBounds, clock: Clock = idleClock(), busy = busy_ms) {
    this.#level = new PauseLevel(bounds);
    this.#clock = clock;
    this.#busy_ms = busy;
    if (bounds.longest_ms > 0) this.#look();
  }

  /** How long a socket is paused after a read; 0: it is not paused. */
  get window_ms(): number {
    return this.#level.window_ms;
  }

  /** The pause of a socket that has just been read; null if it goes on reading. */
  begin(line: PausedLine): Pause | null {
    const { window_ms } = this;
    const wait_ms = window_ms - this.#late_ms;
    if (wait_ms < wait_ms_min) return null;
    const every_ms = Math.max(wait_ms_min, window_ms / timers);
    const now_ms = this.#clock.now_ms();
    const due_ms = Math.floor((now_ms + wait_ms) / every_ms) * every_ms;
    if (due_ms <= now_ms) return null;
    const pause = this.#pauses.get(due_ms) ?? this.#opened(due_ms, now_ms);
    pause.lines.push(line);
    return pause;
  }

  stop(): void {
    this.#cancel();
  }

  #opened(due_ms: number, now_ms: number): Pause {
    const pause: Pause = { lines: [] };
    this.#pauses.set(due_ms, pause);
    this.#clock.after(due_ms - now_ms, () => {
      this.#pauses.delete(due_ms);
      this.#wasDue(due_ms);
      for (const line of pause.lines) line.pauseOver(pause);
    });
    return pause;
  }

  #look(at_ms = this.#clock.now_ms(), busy_ms = this.#busy_ms()): void {
    this.#cancel = this.#clock.after(look_ms, () => {
      this.#wasDue(at_ms + look_ms);
      const now_ms = this.#clock.now_ms();
      const busyNow_ms = this.#busy_ms();
      this.#level.observed(now_ms - at_ms, busyNow_ms - busy_ms);
      this.#look(now_ms, busyNow_ms);
    });
  }

  #wasDue(due_ms: number): void {
    this.#late_ms = Math.max(0, this.#clock.now_ms() - due_ms);
  }
}

/**
 * How much of a core this main thread has wanted: the milliseconds since some instant in which it ran or waited for a
 * core. The waiting counts, because a node that shares its core, or is throttled, reaches its limit before it has used
 * a whole core.
 */
function busy_ms(): number {
  try {
    const [ran_ns = "", waited_ns = ""] = readFileSync("/proc/self/schedstat", "latin1").split(" ");
    return (Number(ran_ns) + Number(waited_ns)) / 1e6;
  } catch {
    // On other systems than Linux: all threads of the process, and only while they run.
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}
