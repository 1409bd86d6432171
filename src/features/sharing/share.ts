/**
 * The part of one process in an engine's limit that the fleet shares. The process holds slots for a while and renews
 * them by exchanges with a store (store/engine-slots.ts). While an exchange runs, the process does not exceed the slots
 * that it reported as held. Without an answer for `slots_fence_ms` it begins no request, because the store may soon
 * give its slots to others. But if the store stopped answering while the slots were valid, and all exchanges have
 * failed from then on, the process keeps its even share of them. Pure: instants are arguments.
 */
import type { Use } from "../../core/routing/slots.ts";
import {
  type SlotCounts,
  type SlotsAsked,
  type SlotsGranted,
  slots_fence_ms,
  slots_lease_ms,
} from "../../core/store/engine-slots.ts";

const none: SlotCounts = { common: 0, reserved: 0 };

export class Share {
  limits: SlotCounts;
  readonly #name: string;
  #number = 0;
  #held = none;
  #target = none;
  /** The number of processes in the fleet, according to the store's last answer. */
  processes = 1;
  /** Whether another process has fewer slots than it should, according to the store's last answer. */
  #isShort = false;
  /**
   * When the last exchange that was answered began (`#renewed_ms`), and when the running exchange began (`#asked_ms`).
   */
  #renewed_ms = Number.NEGATIVE_INFINITY;
  #asked_ms = Number.NEGATIVE_INFINITY;
  /** Whether the last exchange that has ended failed. */
  #hasFailed = false;
  #failed_ms = Number.NEGATIVE_INFINITY;
  /** Whether the store stopped answering while the slots were still valid. */
  #isApart = false;

  constructor(name: string, limits: SlotCounts) {
    this.#name = name;
    this.limits = limits;
  }

  /** The most requests that each part of the capacity may have now. */
  most(now_ms: number): SlotCounts {
    const { common, reserved } = this.#kept(now_ms);
    return { common: Math.min(common, this.limits.common), reserved: Math.min(reserved, this.limits.reserved) };
  }

  /** Whether the store does not answer, so that the process uses only its even share of the slots, or none. */
  isApart(now_ms: number): boolean {
    return now_ms - this.#renewed_ms >= slots_fence_ms;
  }

  ask({ running, waiting, weight }: Use, now_ms: number): SlotsAsked {
    this.#held = larger(running, this.#kept(now_ms));
    this.#asked_ms = now_ms;
    this.#number += 1;
    const wanted = { common: running.common + waiting.common, reserved: running.reserved + waiting.reserved };
    const { limits } = this;
    return { name: this.#name, number: this.#number, limits, held: this.#held, wanted, weight: Math.max(1, weight) };
  }

  granted({ held, target, processes, isShort }: SlotsGranted, { running }: Use): void {
    this.#renewed_ms = this.#asked_ms;
    this.#isApart = false;
    this.#hasFailed = false;
    this.#target = target;
    this.processes = processes;
    this.#isShort = isShort;
    this.#held = larger(running, smaller(held, target));
  }

  failed(now_ms: number): void {
    const known_ms = this.#isApart ? this.#failed_ms : this.#renewed_ms;
    this.#isApart = now_ms - known_ms < slots_lease_ms;
    this.#failed_ms = now_ms;
    this.#hasFailed = true;
  }

  /**
   * Counts the end of a request. Returns whether the process now has slots to give back for which another process
   * waits.
   */
  ended(running: SlotCounts): boolean {
    // While the store does not answer, nobody could take what is given back.
    if (this.#hasFailed) return false;
    const before = this.#held;
    this.#held = smaller(before, larger(running, this.#target));
    if (!this.#isShort) return false;
    return this.#held.common < before.common || this.#held.reserved < before.reserved;
  }

  #kept(now_ms: number): SlotCounts {
    if (!this.isApart(now_ms)) return this.#held;
    if (!this.#isApart || now_ms - this.#failed_ms >= slots_fence_ms) return none;
    // With fewer slots than processes, those that hold one keep it.
    const even = (limit: number) => Math.max(1, Math.floor(limit / this.processes));
    return smaller(this.#held, { common: even(this.limits.common), reserved: even(this.limits.reserved) });
  }
}

function larger(one: SlotCounts, other: SlotCounts): SlotCounts {
  return { common: Math.max(one.common, other.common), reserved: Math.max(one.reserved, other.reserved) };
}

function smaller(one: SlotCounts, other: SlotCounts): SlotCounts {
  return { common: Math.min(one.common, other.common), reserved: Math.min(one.reserved, other.reserved) };
}
