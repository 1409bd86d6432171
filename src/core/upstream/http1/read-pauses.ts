/**
 * The pauses of all sockets of engines. While the process is busy, the bytes that a socket receives wait a little, so
 * that several tokens share a wake-up, a read and a write. Sockets whose pauses end at about the same time share a
 * timer, and are read in one poll: docs/performance.md, Pauses under load.
 */

import { dlopen, ptr } from "bun:ffi";
import { readFileSync } from "node:fs";
import { type Clock, idleClock } from "../../time/clock.ts";
import type { ResponseHead } from "./head.ts";

export interface PausedLine {
  /** Called when the pause has ended. The socket may have ended its own pause earlier. */
  pauseOver(pause: Pause): void;
}

/** A pause that the sockets that were paused at about the same time share. */
export interface Pause {
  readonly lines: PausedLine[];
}

const look_ms = 250;
/** The number of timers that run at a time, and the shortest pause that is worth its system calls. */
const timers = 8;
const wait_ms_min = 5;

/** The part of a connection that an exchange needs. */
export interface Line {
  pause(): void;
  resume(): void;
  /** Runs work after all sockets of this poll were read: urgent work first. */
  soon(work: () => void, isUrgent: boolean): void;
  /** Called when the reader has had its turn, so that more may be read. */
  taken(): void;
  /** How long the socket may be paused after a read; 0 if it is not. */
  readonly pause_ms: number;
  /** Called when the whole answer has been received. */
  over(head: ResponseHead): void;
  /**
   * Called when bytes have arrived after the end of the answer. Returns whether the answer is certainly this request's:
   * true if no other request was sent on the connection before.
   */
  exceeded(): boolean;
  /** Called when the reader has stopped before the end. */
  drop(): void;
}

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

  /** Begins a pause of a socket that has just been read. Null if the socket is not paused. */
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
    // On systems other than Linux, the time is that of all threads of the process, and only while they run.
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}

/**
 * The pauses of an engine's socket after a read, between the shortest and the longest. There are few levels, which
 * change slowly: a pause that followed the load in proportion would change the load that it follows, and oscillate.
 * Pure.
 */
const levels_ms = [25, 50, 100];

interface PauseBounds {
  /** The pause of a process that is not busy. */
  shortest_ms: number;
  longest_ms: number;
}

/** If the load stays above this share of a core for `up_ms`, the next longer pause is used. */
const highLoad_share = 0.8;
const up_ms = 500;
/** If the load stays below this share of a core for `down_ms`, the next shorter pause is used. */
const lowLoad_share = 0.4;
const down_ms = 3000;

class PauseLevel {
  readonly #steps_ms: readonly number[];
  #at = 0;
  #high_ms = 0;
  #low_ms = 0;

  constructor({ shortest_ms, longest_ms }: PauseBounds) {
    const between = levels_ms.filter((ms) => ms > shortest_ms && ms < longest_ms);
    this.#steps_ms = longest_ms > shortest_ms ? [shortest_ms, ...between, longest_ms] : [longest_ms];
  }

  get window_ms(): number {
    return this.#steps_ms[this.#at]!;
  }

  /** Records that the process ran, or waited for a core, for `busy_ms` of the last `elapsed_ms`. */
  observed(elapsed_ms: number, busy_ms: number): void {
    const share = busy_ms / elapsed_ms;
    this.#high_ms = share > highLoad_share ? this.#high_ms + elapsed_ms : 0;
    this.#low_ms = share < lowLoad_share ? this.#low_ms + elapsed_ms : 0;
    if (this.#high_ms >= up_ms) this.#move(1);
    else if (this.#low_ms >= down_ms) this.#move(-1);
  }

  #move(by: number): void {
    this.#at = Math.min(this.#steps_ms.length - 1, Math.max(0, this.#at + by));
    this.#high_ms = 0;
    this.#low_ms = 0;
  }
}

// Linux system calls on a socket, which the runtime does not offer.

/** The constants of Linux on the processors that the runtime supports. */
const MSG_PEEK = 2;
const MSG_DONTWAIT = 64;

const library = { recv: { args: ["int", "ptr", "u64", "int"], returns: "int" } } as const;

export interface SocketCalls {
  /** Whether the system has received bytes, or the peer's end of stream (FIN), that the runtime has not read yet. */
  hasUnread(socket: object): boolean;
}

/** For systems without these calls, where no unread bytes are ever reported. */
const absent: SocketCalls = { hasUnread: () => false };

/** Loads the calls. Returns `absent` on a system other than Linux, or if there is no C library named `libc.so.6`. */
export function socketCalls(): SocketCalls {
  if (process.platform !== "linux") return absent;
  try {
    const { symbols } = dlopen("libc.so.6", library);
    const peeked = new Uint8Array(1);
    const peekedAt = ptr(peeked);
    return {
      hasUnread(socket) {
        const fd = descriptorOf(socket);
        return fd >= 0 && symbols.recv(fd, peekedAt, peeked.byteLength, MSG_PEEK | MSG_DONTWAIT) >= 0;
      },
    };
  } catch {
    return absent;
  }
}

/** The file descriptor of a socket, which the runtime's types do not declare. */
function descriptorOf(socket: object): number {
  const { fd } = socket as { fd?: unknown };
  return typeof fd === "number" ? fd : -1;
}
