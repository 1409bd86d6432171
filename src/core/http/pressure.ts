/** Measures how close the process is to the machine's limits of memory and descriptors, a few times a second. */

/** How long a reading is reused: it costs a system call or two. */
const look_ms = 100;
/** While the process is above its mark, a collection is requested at most this often. */
const collect_ms = 5_000;

export interface Machine {
  /** Resident bytes of this process. */
  residentBytes(): number;
  /** Frees unused memory, which takes some milliseconds. */
  collect(): void;
  /** The number of the lowest free descriptor: at least that many are open. */
  lowestFreeDescriptor(): number;
}

export interface Pressure {
  /** Whether the process is above its high-water mark of memory. */
  memoryIsHigh(): boolean;
  /** Whether so few descriptors are left that connections have to be closed. */
  descriptorsAreFew(): boolean;
}

export interface PressureLimits {
  memory_bytes: number;
  /** The most descriptors that the process may open; null if unknown. */
  descriptors_max: number | null;
}

/** The descriptors that are reserved for engines, stores and probes: a sixteenth, from 32 to 512. */
export function descriptorsKept(descriptors_max: number): number {
  return Math.min(512, Math.max(32, Math.floor(descriptors_max / 16)));
}

export function pressure(limits: PressureLimits, machine: Machine, now_ms: () => number): Pressure {
  const { memory_bytes, descriptors_max } = limits;
  const isFull =
    descriptors_max === null
      ? () => false
      : () => machine.lowestFreeDescriptor() >= descriptors_max - descriptorsKept(descriptors_max);
  let collected_ms = Number.NEGATIVE_INFINITY;

  // Whether memory is above the mark, after a collection: memory that was freed long ago may count as resident until
  // then.
  function isHigh(): boolean {
    if (machine.residentBytes() <= memory_bytes) return false;
    if (now_ms() - collected_ms >= collect_ms) {
      collected_ms = now_ms();
      machine.collect();
    }
    return true;
  }

  return { memoryIsHigh: lookedAt(isHigh, now_ms), descriptorsAreFew: lookedAt(isFull, now_ms) };
}

function lookedAt(look: () => boolean, now_ms: () => number): () => boolean {
  let seen_ms = Number.NEGATIVE_INFINITY;
  let seen = false;
  return () => {
    if (now_ms() - seen_ms < look_ms) return seen;
    seen_ms = now_ms();
    seen = look();
    return seen;
  };
}
