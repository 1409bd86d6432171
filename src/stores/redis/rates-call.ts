/**
 * One call of the script (rates-script.ts): the requests that are sent together, and the answers to all.
 */
import type { RateRequest, RateSubject } from "../../core/store/rates.ts";
import { standingSubjects } from "../../features/telemetry/store/standing.ts";
import { countedSingly } from "../counting/rates.ts";
import type { ChangeAsked, RatesAsked, TakeAsked, TakeReply } from "./rates-script.ts";
import type { Change } from "./waiting-changes.ts";

export class RatesCall {
  /** The keys of the call, each once. Their positions are counted from 1, as in Lua. */
  readonly keys: string[] = [];
  readonly takes: TakeAsked[] = [];
  /** Resolved when the call is sent, with what Redis will answer. */
  readonly replies = Promise.withResolvers<readonly TakeReply[]>();
  readonly #askers: PromiseWithResolvers<TakeReply>[] = [];
  readonly #places = new Map<string, number>();
  readonly #prefix: string;

  /** The prefix of keys, before the organization's id. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Adds a request and returns its reply. If `request` is null, only reads. */
  add(organizationId: string, subjects: readonly RateSubject[], request: RateRequest | null): Promise<TakeReply> {
    const asked = subjects.map((subject): TakeAsked[3][number] => {
      const { requestsPerMinute, tokensPerMinute } = subject.limits;
      return [
        this.#placeOf(organizationId, subject),
        countedSingly(subject.limits) ? 0 : 1000,
        requestsPerMinute,
        tokensPerMinute,
      ];
    });
    const { requestId = "", tokens = null, tokens_min = null } = request ?? {};
    this.takes.push([requestId, tokens, tokens_min, asked]);
    const asker = Promise.withResolvers<TakeReply>();
    this.#askers.push(asker);
    return asker.promise;
  }

  answered(replies: readonly TakeReply[]): void {
    for (const [place, asker] of this.#askers.entries()) asker.resolve(replies[place]!);
  }

  failed(cause: unknown): void {
    for (const asker of this.#askers) asker.reject(cause);
  }

  /**
   * The argument of the script: the requests of the call, with these changes. If `now_ms` is null, the script uses the
   * clock of Redis.
   */
  asked(now_ms: number | null, changes: readonly Change[]): string {
    const changed = changes.map(
      ({ organizationId, subject, number, name, requests, tokens }): ChangeAsked => [
        this.#placeOf(organizationId, subject),
        number,
        name,
        requests,
        tokens,
      ],
    );
    return JSON.stringify([now_ms, changed, this.takes] satisfies RatesAsked);
  }

  /**
   * The position of a subject's key in `keys`, from 1. The keys of an organization's other subjects begin with the
   * organization's own key.
   */
  #placeOf(organizationId: string, { id }: Change["subject"]): number {
    const whole = `${this.#prefix}{${organizationId}}`;
    const key = id.startsWith(standingSubjects.organization) ? whole : `${whole}:${id}`;
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    const place = this.keys.push(key);
    this.#places.set(key, place);
    return place;
  }
}
