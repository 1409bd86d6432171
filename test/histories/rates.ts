// The sliding rates of a history: a store of their own that all nodes share (Redis), and behind it what the database
// counts while that is away, each over a wire that may fail.

import { standbyRates } from "../../src/core/admission/standby-rates.ts";
import {
  hopelessLimit,
  minute_ms,
  type RateAnswer,
  type RateCount,
  type RateRequest,
  type Rates,
  readingsOf,
  refusalOf,
} from "../../src/core/store/rates.ts";
import type { Judge } from "./judge.ts";
import type { Node } from "./node.ts";
import type { Store } from "./store.ts";
import type { Time } from "./time.ts";
import type { World } from "./world.ts";

/** An answer that takes longer is none (src/stores/redis/connection.ts). */
const answer_ms_max = 2_000;

export function ratesOf(world: World, judge: Judge, node: Node): Rates {
  const over = (rates: () => Rates | null): Rates => ({
    async take(request) {
      const answer = await carried(
        world,
        node,
        `rates-${request.requestId.slice("req_".length)}`,
        () => rates()?.take(request),
        (answer) => judge.counted(request.requestId, answer),
      );
      if (answer.answer !== "taken") return answer;
      const told = (change: () => Promise<void>) =>
        carried(world, node, `told-${request.requestId.slice("req_".length)}`, () => rates() && change()).catch(
          () => {},
        );
      return {
        ...{ answer: "taken", readings: answer.readings },
        giveBack: () => told(() => answer.giveBack()),
        correct: (tokens) => told(() => answer.correct(tokens)),
      };
    },
    read: nobodyReads,
    async close() {},
  });
  const first = over(() => (world.ratesAway ? null : world.rates));
  const standby = over(() => (world.store.down ? null : world.standbyRates));
  return standbyRates({ first: world.defects.rates?.(first) ?? first, standby, clock: node.clock });
}

/** There and back; `act` answers nothing where its store is away. */
export function carried<Result>(
  world: World,
  node: Node,
  about: string,
  act: () => Promise<Result> | null | undefined,
  done?: (result: Result) => void,
): Promise<Result> {
  const fate = world.ratesFate(node.nextMessage(about));
  const sent_ms = world.time.now_ms;
  return new Promise((resolve, reject) => {
    const hear = (delay_ms: number, outcome: () => void) => {
      const left_ms = sent_ms + answer_ms_max - world.time.now_ms;
      const failed = () => reject(new Error("the store of the rates did not answer"));
      node.clock.arrive(Math.max(0, Math.min(delay_ms, left_ms)), delay_ms > left_ms ? failed : outcome);
    };
    const lost = () => {
      const trouble = { from_ms: sent_ms, to_ms: world.time.now_ms };
      world.rateTroubles.push(trouble);
      hear(fate.hangs ? answer_ms_max : 1, () => reject(new Error("the store of the rates is away")));
    };
    if (fate.harmed) world.rateTroubles.push({ from_ms: sent_ms, to_ms: sent_ms + answer_ms_max });
    if (fate.lost) return lost();
    world.in(fate.arrive_ms, () => {
      const result = act();
      if (!result) return lost();
      result.then((value) => {
        done?.(value);
        if (fate.unanswered) lost();
        else hear(fate.answer_ms, () => resolve(value));
      });
    });
  });
}

/** No client of a history asks for its usage. */
async function nobodyReads(): Promise<never> {
  throw new Error("rates are not read in histories");
}

interface Counted {
  id: string;
  at_ms: number;
  tokens: number;
}

/** As `usage_rates` counts (migration 0006), each request by itself, and what was counted elsewhere by the ledger's rows. */
export function bookRates(time: Time, store: Store): Rates {
  const books = new Map<string, Counted[]>();

  function bookOf({ organizationId, elsewhere_ms }: RateRequest): Counted[] {
    const since_ms = time.now_ms - minute_ms;
    const book = (books.get(organizationId) ?? []).filter(({ at_ms }) => at_ms > since_ms);
    books.set(organizationId, book);
    if (elsewhere_ms === undefined) return book;
    for (const { id, at_ms, tokens } of store.admittedSince(organizationId, since_ms))
      if (!book.some((one) => one.id === id)) book.push({ id, at_ms, tokens });
    return book.sort((one, other) => one.at_ms - other.at_ms);
  }

  return {
    async take(request): Promise<RateAnswer> {
      const { subjects, tokens_min } = request;
      const { limits } = subjects[0]!;
      const hopeless = hopelessLimit(request);
      if (hopeless) return hopeless;
      const book = bookOf(request);
      const used = book.reduce((sum, { tokens }) => sum + tokens, 0);
      const tokens = Math.max(tokens_min, Math.min(request.tokens, (limits.tokensPerMinute ?? Infinity) - used));
      const taken =
        book.length + 1 <= (limits.requestsPerMinute ?? Infinity) &&
        used + tokens <= (limits.tokensPerMinute ?? Infinity);
      const entry: Counted = { id: request.requestId, at_ms: time.now_ms, tokens };
      if (taken) book.push(entry);
      const count: RateCount = {
        requests: book.length,
        tokens: used + (taken ? tokens : 0),
        reset_ms: minute_ms,
        requestsRetry_ms: taken ? 0 : minute_ms,
        tokensRetry_ms: 0,
      };
      if (!taken) return refusalOf([count], subjects);
      return {
        answer: "taken",
        readings: readingsOf(count, limits),
        async giveBack() {
          const now = books.get(request.organizationId)!;
          books.set(
            request.organizationId,
            now.filter((one) => one !== entry),
          );
        },
        async correct(actual) {
          entry.tokens = actual;
        },
      };
    },
    read: nobodyReads,
    async close() {},
  };
}
