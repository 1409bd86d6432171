/**
 * Decides which engines are asked not to stream an answer although its cap is above `unstreamed_tokens_max`. These are
 * the engines whose measured speed is enough to finish it within the time that an engine gets after its client has
 * left. So a client that leaves is nearly always charged by the engine's report: docs/design/usage.md, Answers that
 * aren't streamed.
 */
import type { Route } from "../routing/catalog.ts";
import { finish_ms } from "./departure.ts";
import { type Learned, learned, learned_max } from "./input-estimate.ts";
import { routeName } from "./output-calibration.ts";

interface Speed {
  /** The time per token, the time before the first token included. The estimate tends to be too high. */
  token_ms: number;
  answers: number;
  at_ms: number;
}

/** The last two times at which a client left and the engine did not finish the answer in time. */
interface Departures {
  before_ms: number;
  last_ms: number;
}

export interface EndedAttempt {
  route: Route;
  keyId: string;
  ms: number;
  /**
   * The output tokens that the engine reported for a complete answer; null: the answer is not complete, or has no
   * report.
   */
  reported: number | null;
  /** The request's cap on output tokens, if the engine was asked not to stream by the rule of this file; else null. */
  quickTokens: number | null;
  isLeft: boolean;
}

/**
 * How many answers must have been measured before a route's speed is used, and how long the speed is used after the
 * last answer.
 */
const answers_min = 8;
const believed_ms = 600_000;
/**
 * In a short answer, the time before the first token is a large part. So an answer shorter than this can show that an
 * engine is fast, but not that it is slow. Very short answers show nothing.
 */
const tokens_long_min = 64;
const tokens_min = 16;
/**
 * How far an answer moves the known speed towards its own, as a fraction of the distance: one fraction for a slower
 * answer, and one for a faster answer.
 */
const weights = { slower: 1 / 2, faster: 1 / 16 };
/** If a client leaves twice within this time, its answers are requested as streams for the same time after that. */
const departures_ms = 60_000;
const clients_max = 10_000;

export class WholeAnswers {
  readonly #speeds: Learned<Speed> = learned(learned_max, () => true);
  readonly #departures: Learned<Departures> = learned(clients_max, () => true);

  /**
   * Whether this route's engine may be asked, for this client, to answer with up to `tokens` tokens without streaming.
   */
  mayBeWhole(route: Route, keyId: string, tokens: number, now_ms: number): boolean {
    if (route.upstream.dialect?.stopsForLeaver.whole === false || this.#isLeaver(keyId, now_ms)) return false;
    const speed = this.#speedOf(route, now_ms);
    return speed !== null && speed.answers >= answers_min && speed.token_ms * tokens <= finish_ms;
  }

  /**
   * Learns from an attempt that has ended. An engine that did not finish in time counts as if it had used the whole
   * cap.
   */
  ended({ route, keyId, ms, reported, quickTokens, isLeft }: EndedAttempt, now_ms: number): void {
    const isSlow = reported === null && quickTokens !== null && ms >= finish_ms;
    this.#observe(route, (isSlow ? quickTokens : reported) ?? 0, ms, now_ms);
    if (!isSlow || !isLeft) return;
    const before_ms = this.#departures.get(keyId)?.last_ms ?? Number.NEGATIVE_INFINITY;
    this.#departures.learn(keyId, { before_ms, last_ms: now_ms });
  }

  #observe(route: Route, tokens: number, ms: number, now_ms: number): void {
    const { token_ms, answers } = this.#speedOf(route, now_ms) ?? { token_ms: ms / tokens, answers: 0 };
    const more_ms = ms / tokens - token_ms;
    if (tokens < (more_ms > 0 ? tokens_long_min : tokens_min)) return;
    this.#speeds.learn(routeName(route), {
      token_ms: token_ms + more_ms * (more_ms > 0 ? weights.slower : weights.faster),
      answers: answers + 1,
      at_ms: now_ms,
    });
  }

  #speedOf(route: Route, now_ms: number): Speed | null {
    const speed = this.#speeds.get(routeName(route));
    return speed && now_ms - speed.at_ms <= believed_ms ? speed : null;
  }

  #isLeaver(keyId: string, now_ms: number): boolean {
    const { before_ms, last_ms } = this.#departures.get(keyId) ?? never;
    return last_ms - before_ms <= departures_ms && now_ms - last_ms <= departures_ms;
  }
}

const never: Departures = { before_ms: Number.NEGATIVE_INFINITY, last_ms: 0 };
