/**
 * ADMISSION: decides whether a request may run now. A request asks at the entrance (entrance.ts) and gets a reservation
 * (reservation.ts). Both reach the ledger through one batcher (batcher.ts). A sweeper settles the holds, the amounts
 * reserved for running requests, of nodes that no longer run (recovery.ts). This file puts them together.
 */
import type { Currency } from "../inference/money.ts";
import type { Ledger, SettleAnswer } from "../store/ledger.ts";
import type { Rates } from "../store/rates.ts";
import { type Clock, systemClock } from "../time/clock.ts";
import { type BatcherParts, type BatcherSettings, batcher, batcherSettings } from "./batcher.ts";
import { type Entrance, type EntranceParts, entrance } from "./entrance.ts";
import type { LimitChanges } from "./limits-in-force.ts";
import { recovery } from "./recovery.ts";

export interface Admission extends Entrance {
  /**
   * Ends a drain: admits nothing more, and resolves when every settlement is confirmed or `within_ms` has passed (5 s
   * by default). Returns how many are not confirmed: the leases of those requests lapse, and another node settles them
   * at their last checkpoint.
   */
  stop(within_ms?: number): Promise<number>;
  /** The number of this node's requests with a hold (an amount reserved for them). */
  holds(): number;
  /** The number of settlements that the store has not confirmed yet. */
  waitingSettlements(): number;
}

export interface AdmissionParts {
  ledger: Pick<Ledger, "run" | "recover">;
  /**
   * The changes of limits that are not a plan's, such as those of keys and teams. They apply to running requests too.
   * Absent: running requests keep the limits of keys and teams with which they began.
   */
  changes?: LimitChanges;
  /** Counts the requests and tokens of each minute. Absent: rate limits are not enforced. */
  rates?: Rates;
  metering: { lease_s: number; checkpoint_s: number; sweep_s: number; currency: Currency };
  /** How long an admission waits for its grant before it is refused with 503. Called for each admission. */
  grant_ms(): number;
  /** Called with the reason at each failed attempt to use the store. */
  log?: (cause: unknown) => void;
  /** Called with the number of lapsed holds (reserved amounts whose lease ended) that a sweep has settled. */
  recovered?: (count: number) => void;
  /** Called with the charge of each confirmed settlement. */
  settled?: (answer: SettleAnswer, requestId: string) => void;
  /** Called with the time that each request waited for its grant. */
  waited?: EntranceParts["waited"];
  sent?: BatcherParts["sent"];
  batches?: Partial<BatcherSettings>;
  clock?: Clock;
  random?: () => number;
}

const recovered_max = 200;

export function admission(parts: AdmissionParts): Admission {
  const { ledger, log, recovered, clock = systemClock(), random = Math.random } = parts;
  const lease_ms = parts.metering.lease_s * 1000;
  const checkpoint_ms = parts.metering.checkpoint_s * 1000;
  const { currency } = parts.metering;
  const commands = batcher(
    { ledger, clock, random, failed: log, sent: parts.sent },
    { ...batcherSettings, ...parts.batches },
  );
  const requests = entrance(
    { ...parts, batcher: commands, clock },
    { lease_ms, checkpoint_ms, grant_ms: parts.grant_ms, currency },
  );
  const sweeps = recovery(
    { ledger, clock, recovered, failed: log },
    { sweep_ms: parts.metering.sweep_s * 1000, lease_ms, recovered_max },
  );
  return {
    enter: requests.enter,
    async stop(within_ms = 5_000) {
      await sweeps.stop();
      return commands.stop(within_ms);
    },
    holds: requests.holds,
    waitingSettlements: commands.waiting,
  };
}
