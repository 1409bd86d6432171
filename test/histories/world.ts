// The simulated environment of one history (a simulated run): time, the store, the nodes, and the wires and faults
// between them.

import type { Rates } from "../../src/core/store/rates.ts";
import { memoryRates } from "../../src/stores/memory/rates.ts";
import { type Budgets, budgetsOf } from "./budgets.ts";
import { chanceFor, kindOf } from "./chances.ts";
import { LogsModel } from "./logs.ts";
import type { Defects } from "./mutations.ts";
import type { Node } from "./node.ts";
import { Office } from "./office.ts";
import type { Scenario, Weather } from "./scenario.ts";
import { Store } from "./store.ts";
import { Time } from "./time.ts";

/** The parts of a history that a replay keeps; an absent list keeps all. */
export interface Keep {
  nodes?: readonly number[];
  requests?: readonly number[];
  /** The highest number of parts that an answer has. */
  parts?: number;
  faults?: readonly number[];
  /** The messages that may be lost, delayed or doubled; all others pass quickly, once. */
  messages?: readonly string[];
}

export const noWeather: Weather = { lost: 0, unanswered: 0, slow: 0, doubled: 0 };

/** A period in which a fault stood between a node and a store. */
export interface Trouble {
  from_ms: number;
  to_ms: number;
}

/** The fate of one message: when it arrives, or how it fails. */
export interface Fate {
  id: string;
  arrive_ms: number;
  /**
   * The time until the message's effects are on the store's disk, and then the time until the answer reaches the node.
   */
  flush_ms: number;
  answer_ms: number;
  lost: boolean;
  unanswered: boolean;
  /** Whether, if no answer comes back, the node waits in vain; otherwise its connection breaks at once. */
  hangs: boolean;
  /** The time after which the message is carried out late, or once more; null if it is not. */
  again_ms: number | null;
  /** Whether the message was lost, slow, doubled or left unanswered. */
  harmed: boolean;
}

export class World {
  readonly time: Time;
  readonly store: Store;
  readonly office: Office;
  /** Limits of keys and teams, by organization. */
  readonly budgets: ReadonlyMap<string, Budgets>;
  /** The sliding rates that all nodes share, in a store of their own. */
  rates: Rates;
  /** The logs of answers that are kept, in the same store as the rates. */
  readonly logs = new LogsModel();
  ratesAwayUntil_ms = 0;
  /** The nodes by index; undefined where a replay leaves one out. */
  readonly nodes: (Node | undefined)[] = [];
  readonly storeTroubles: Trouble[] = [];
  readonly rateTroubles: Trouble[] = [];
  /** The times at which the store's clock was set, and by how much. */
  readonly steps: { at_ms: number; by_ms: number }[] = [];
  /** The ids of the messages that were lost, slow, doubled or left unanswered. */
  readonly harmed: string[] = [];
  readonly trace: string[] = [];
  /** Whether the quiet phase has begun, in which nothing goes wrong. */
  quiet = false;
  /** The number of pending events: requests, faults, and messages that will be carried out. */
  #toCome = 0;
  readonly #mayMeetFates: ReadonlySet<string> | null;

  constructor(
    readonly seed: number,
    readonly scenario: Scenario,
    readonly defects: Defects,
    readonly keep: Keep,
    readonly traced: boolean,
  ) {
    this.time = new Time(scenario.began_ms);
    this.office = new Office(
      () => this.time.now_ms,
      scenario.organizations,
      () => this.store,
    );
    this.budgets = new Map(scenario.organizations.map(({ id }) => [id, budgetsOf(seed, id, () => this.store)]));
    const organizations = new Map(
      scenario.organizations.map(({ id, anchors, extra, plan }) => {
        const { began: own, subjectsOf } = this.budgets.get(id)!;
        return [id, { anchors, extra, limits: plan, own, subjectsOf }];
      }),
    );
    this.store = new Store(this.time, organizations, scenario.recovery, defects.store ?? {});
    this.rates = this.freshRates();
    this.#mayMeetFates = keep.messages ? new Set(keep.messages) : null;
  }

  tell(sentence: () => string): void {
    if (!this.traced) return;
    const at_s = (this.time.now_ms - this.time.began_ms) / 1000;
    this.trace.push(`${at_s.toFixed(3).padStart(7)} s  ${sentence()}`);
  }

  setClock(by_ms: number): void {
    if (by_ms === 0) return;
    this.tell(() => `the store's clock is set by ${by_ms} ms`);
    this.store.isAhead_ms += by_ms;
    this.steps.push({ at_ms: this.time.now_ms, by_ms });
  }

  freshRates(): Rates {
    return memoryRates(() => this.time.now_ms);
  }

  /** Schedules an event that must happen before the history can end. */
  in(delay_ms: number, run: () => void): void {
    this.#toCome += 1;
    this.time.in(delay_ms, () => {
      this.#toCome -= 1;
      run();
    });
  }

  /** The number of running processes, as the fleet's reports would show it if they came without delay. */
  get processes(): number {
    return this.nodes.filter((node) => node && !node.clock.crashed).length;
  }

  get ratesAway(): boolean {
    return this.time.now_ms < this.ratesAwayUntil_ms;
  }

  /** Whether no event is left except sweeps that find nothing. */
  get isOver(): boolean {
    return this.#toCome === 0 && this.store.model.holds.size === 0 && this.nodes.every((node) => !node || node.isIdle);
  }

  /** The fate of the message with this name. */
  fate(id: string): Fate {
    return this.#fate(id, this.scenario.weather);
  }

  /** The fate of the message with this name on its way to the store of the sliding rates. */
  ratesFate(id: string): Fate {
    return this.#fate(id, this.scenario.ratesMayFail ? this.scenario.weather : noWeather);
  }

  #fate(id: string, weather: Weather): Fate {
    const chance = chanceFor(this.seed, kindOf.message, numberOf(id));
    const calm: Fate = {
      id,
      arrive_ms: 1 + chance.below(4),
      flush_ms: 1 + chance.below(this.scenario.flush_ms_max),
      answer_ms: 1 + chance.below(4),
      lost: false,
      unanswered: false,
      hangs: false,
      again_ms: null,
      harmed: false,
    };
    if (this.quiet || weather === noWeather || (this.#mayMeetFates && !this.#mayMeetFates.has(id))) return calm;
    const long_ms = (least: number, most: number) => Math.round(least * (most / least) ** chance.next());
    const slow = chance.next();
    const fate: Fate = {
      ...calm,
      arrive_ms: slow < weather.slow / 2 ? long_ms(20, 12_000) : calm.arrive_ms,
      answer_ms: slow > 1 - weather.slow / 2 ? long_ms(20, 12_000) : calm.answer_ms,
      lost: chance.next() < weather.lost,
      unanswered: chance.next() < weather.unanswered,
      hangs: chance.next() < 0.3,
      again_ms: chance.next() < weather.doubled ? long_ms(20, 20_000) : null,
    };
    const isSlow = fate.arrive_ms !== calm.arrive_ms || fate.answer_ms !== calm.answer_ms;
    fate.harmed = fate.lost || fate.unanswered || isSlow || fate.again_ms !== null;
    if (fate.harmed) this.harmed.push(id);
    return fate.harmed ? fate : calm;
  }
}

function numberOf(id: string): number {
  let number = 0x811c9dc5;
  for (let index = 0; index < id.length; index++) number = Math.imul(number ^ id.charCodeAt(index), 0x01000193);
  return number;
}

/** Whether one of the troubles overlaps the period from `from_ms` to `to_ms`. */
export function reaches(troubles: readonly Trouble[], from_ms: number, to_ms: number): boolean {
  return troubles.some((trouble) => trouble.from_ms <= to_ms && trouble.to_ms >= from_ms);
}
