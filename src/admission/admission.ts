/**
 * The room ADMISSION: may this run now. A request asks at the entrance (entrance.ts) and gets a reservation
 * (reservation.ts); both speak to the ledger through one batcher (batcher.ts); a sweeper settles what nodes that are gone
 * have left behind (recovery.ts). Before the entrance sliding rates are taken (rates.ts). Pure beside them: hold, percent,
 * refusal, estimate. This file puts them together.
 */
import type { Ledger, SettleAnswer } from "../store/ledger.ts";
import type { Rates } from "../store/rates.ts";
import { type Clock, systemClock } from "../time/clock.ts";
import { type BatcherParts, type BatcherSettings, batcher, batcherSettings } from "./batcher.ts";
import { type Entrance, type EntranceParts, entrance } from "./entrance.ts";
import type { LimitChanges } from "./limit-changes.ts";
import { ratedEntrance } from "./rates.ts";
import { recovery } from "./recovery.ts";

export interface Admission extends Entrance {
  /**
   * Ends a drain: admits nothing more, and resolves when every settlement is confirmed, or `within_ms` has
   * passed (5 s unless said); answers how many are not. Those requests' leases lapse, and another node settles them at
   * their last checkpoint.
   */
  stop(within_ms?: number): Promise<number>;
  /** Requests of this node that hold something. */
  holds(): number;
  /** Settlements that the store has not confirmed yet. */
  waitingSettlements(): number;
}

export interface AdmissionParts {
  ledger: Pick<Ledger, "run" | "recover">;
  /** The changes of limits beside those of plans; without them running requests keep the limits of keys and teams. */
  changes?: LimitChanges;
  /** Counts what plans allow a minute; without it those limits do not count. */
  rates?: Rates;
  metering: { lease_s: number; checkpoint_s: number; sweep_s: number };
  /** A grant that takes longer is a 503. Asked for each admission. */
  grant_ms(): number;
  /** Told why the store could not be used, at each attempt. */
  log?: (cause: unknown) => void;
  /** Told how many lapsed holds a sweep has settled. */
  recovered?: (count: number) => void;
  /** Told what each confirmed settlement has charged. */
  settled?: (answer: SettleAnswer) => void;
  /** Told how long each request waited for its grant. */
  waited?: EntranceParts["waited"];
  /** Told of each batch that was sent to the ledger. */
  sent?: BatcherParts["sent"];
  batches?: Partial<BatcherSettings>;
  clock?: Clock;
  /** From 0 to 1. */
  random?: () => number;
}

const recovered_max = 200;

export function admission(parts: AdmissionParts): Admission {
  const { ledger, log, recovered, clock = systemClock(), random = Math.random } = parts;
  const lease_ms = parts.metering.lease_s * 1000;
  const checkpoint_ms = parts.metering.checkpoint_s * 1000;
  const commands = batcher(
    { ledger, clock, random, failed: log, sent: parts.sent },
    { ...batcherSettings, ...parts.batches },
  );
  const unrated = entrance(
    { batcher: commands, clock, changes: parts.changes, settled: parts.settled, waited: parts.waited },
    { lease_ms, checkpoint_ms, grant_ms: parts.grant_ms },
  );
  const sweeps = recovery(
    { ledger, clock, recovered, failed: log },
    { sweep_ms: parts.metering.sweep_s * 1000, lease_ms, recovered_max },
  );
  return {
    enter: ratedEntrance(unrated, parts.rates ?? null).enter,
    async stop(within_ms = 5_000) {
      await sweeps.stop();
      return commands.stop(within_ms);
    },
    holds: unrated.holds,
    waitingSettlements: commands.waiting,
  };
}
