/**
 * The pauses of all sockets of engines: while the process is busy, what a socket receives waits a little, so that tokens
 * share a wake, a read and a write. Sockets whose pauses end at about the same time share a timer, and are read in one
 * poll: docs/performance.md, Pauses under load.
 */
import { readFileSync } from "node:fs";
import { type Clock, idleClock } from "../../time/clock.ts";
import { type PauseBounds, PauseLevel } from "./pause-level.ts";

export interface PausedLine {
  /** This pause is over. It may have been ended before by other means. */
  pauseOver(pause: Pause): void;
}

/** A pause, which all sockets share that were paused for it. */
export interface Pause {
  readonly lines: PausedLine[];
}

/** The load is looked at this often. */
const look_ms = 250;
/** A window has so many timers, none of which waits less than this. A shorter pause is not worth its system calls. */
const timers = 8;
const wait_ms_min = 5;

export class ReadPauses {
  readonly #level: PauseLevel;
  readonly #clock: Clock;
  readonly #busy_ms: () => number;
  readonly #pauses = new Map<number, Pause>();
  /** By how much the last timer was late. What a socket receives has waited as long already. */
  #late_ms = 0;
  #cancel: () => void = () => {};

  constructor(bounds: PauseBounds, clock: Clock = idleClock(), busy = busy_ms) {
    this.#level = new PauseLevel(bounds);
    this.#clock = clock;
    this.#busy_ms = busy;
    if (bounds.longest_ms > 0) this.#look();
  }

  /** How long a socket is paused after a read; 0 if it is not. */
  get window_ms(): number {
    return this.#level.window_ms;
  }

  /** Returns the pause that a socket begins which has just been read; null if it goes on. */
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
 * How much of a core this main thread wants: the time that it ran and that it waited for a core to run on, in
 * milliseconds since some instant. The waiting counts, because a node that shares its core, or is throttled, is at its
 * limit before it has used a whole one.
 */
function busy_ms(): number {
  try {
    const [ran_ns = "", waited_ns = ""] = readFileSync("/proc/self/schedstat", "latin1").split(" ");
    return (Number(ran_ns) + Number(waited_ns)) / 1e6;
  } catch {
    // Not Linux: all threads of the process, and only while they run.
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}
