/** One call of the script (rates-script.ts): the requests of one organization in one turn, and the answers to all. */
import { countedSingly, type RateRequest, type RateSubject } from "../../core/store/rates.ts";
import { standingSubjects } from "../../core/store/standing.ts";
import type { ChangeAsked, RatesAsked, TakeAsked, TakeReply } from "./rates-script.ts";
import type { Change } from "./waiting-changes.ts";

export class RatesCall {
  /** Each once. Their places are counted from 1. */
  readonly keys: string[] = [];
  readonly takes: TakeAsked[] = [];
  readonly answer = Promise.withResolvers<readonly TakeReply[]>();
  readonly #places = new Map<string, number>();
  readonly #wholeKey: string;

  /** The organization's own key, with which the keys of all others of it begin. */
  constructor(wholeKey: string) {
    this.#wholeKey = wholeKey;
  }

  /** Adds a request and returns its reply. Without a request, it reads. */
  async add(subjects: readonly RateSubject[], request: RateRequest | null): Promise<TakeReply> {
    const asked = subjects.map((subject): TakeAsked[3][number] => {
      const { requestsPerMinute, tokensPerMinute } = subject.limits;
      return [this.#placeOf(subject), countedSingly(subject.limits) ? 0 : 1000, requestsPerMinute, tokensPerMinute];
    });
    const { requestId = "", tokens = null, tokens_min = null } = request ?? {};
    const place = this.takes.push([requestId, tokens, tokens_min, asked]) - 1;
    return (await this.answer.promise)[place]!;
  }

  /** The argument of the script, with these changes. If `now_ms` is null, the script uses the clock of Redis. */
  asked(now_ms: number | null, changes: readonly Change[]): string {
    const changed = changes.map(
      ({ subject, number, name, requests, tokens }): ChangeAsked => [
        this.#placeOf(subject),
        number,
        name,
        requests,
        tokens,
      ],
    );
    return JSON.stringify([now_ms, changed, this.takes] satisfies RatesAsked);
  }

  #placeOf({ id }: Change["subject"]): number {
    const known = this.#places.get(id);
    if (known !== undefined) return known;
    const place = this.keys.push(
      id.startsWith(standingSubjects.organization) ? this.#wholeKey : `${this.#wholeKey}:${id}`,
    );
    this.#places.set(id, place);
    return place;
  }
}
