/**
 * Notices that the store woke up in the past. Beside the ledger it keeps the last settlements that were confirmed to this
 * node, and asks the store every second, off the path of requests, where it is and whether it has the last of them. If it
 * has not, or is somewhere else, all of them are looked for, and those that the fleet has left in another place
 * (docs/design/metering.md, A store that wakes up in the past).
 */
import type { Answer, Command, Ledger } from "../store/ledger.ts";
import type { Confirmed, Look, LostReceipts, Place, ReceiptMemory } from "../store/lost.ts";
import { repeating } from "../time/repeating.ts";
import { RecentReceipts } from "./recent-receipts.ts";

export interface ReceiptWatch {
  /** The ledger's, with an ear to what it confirms. */
  run: Ledger["run"];
  /** The timeline of the store at the last look; NaN: not known. */
  timeline(): number;
  stop(): Promise<void>;
}

export interface Moved {
  from: Place;
  to: Place;
}

export interface ReceiptWatchParts {
  ledger: Pick<Ledger, "run">;
  store: LostReceipts;
  memory: ReceiptMemory | null;
  /** Told when the store was found on another server or timeline than before. */
  moved: (moved: Moved) => void;
  /** Told which confirmed settlements the store does not have any more, each once in the fleet. */
  lost: (lost: Confirmed[]) => void;
  /** Told once for each outage. */
  failed: (cause: unknown) => void;
  every_ms?: number;
}

/** At 2,000 settlements a second, the last ten seconds. */
const kept_max = 20_000;
const every_ms = 1_000;

export function receiptWatch(parts: ReceiptWatchParts): ReceiptWatch {
  const { ledger, store, memory } = parts;
  const kept = new RecentReceipts(kept_max);
  /** The number of the youngest receipts that are not in the memory beside the store yet. */
  let unremembered = 0;
  let hasBegun = false;
  /** Whether what was left beside the store is still to be compared. */
  let mustRecall = false;
  let isAway = false;
  let place: Place | null = null;
  let ledgerId: string | null = null;
  const rounds = repeating(round, { first: 0, every: parts.every_ms ?? every_ms });

  async function round(): Promise<void> {
    try {
      const seen = await store.look(kept.latest(1)[0]?.requestId ?? null);
      const from = movement(seen);
      const mustCompare = !hasBegun || from !== null || !seen.has;
      const noted = mustCompare || mustRecall ? await compare(seen, mustCompare) : [];
      if (from && seen.place) parts.moved({ from, to: seen.place });
      if (noted.length > 0) parts.lost(noted);
      place = seen.place;
      hasBegun = true;
      ledgerId = seen.ledgerId;
      await remember();
      isAway = false;
    } catch (cause) {
      if (!isAway) parts.failed(cause);
      isAway = true;
    }
  }

  /** From where, where this node, or any before it, saw the store elsewhere. */
  function movement(seen: Look): Place | null {
    if (place && seen.place && !isSame(place, seen.place)) return place;
    return seen.movedFrom;
  }

  /** Answers what nobody had missed yet. */
  async function compare({ ledgerId: book, place: at }: Look, withKept: boolean): Promise<Confirmed[]> {
    const elsewhere = await recall(book);
    const all = new Map([...elsewhere, ...(withKept ? kept.latest() : [])].map((one) => [one.requestId, one]));
    const { absent, noted } = await store.compare([...all.values()], at);
    if (absent.length > 0) kept.forget(new Set(absent.map(({ requestId }) => requestId)));
    return noted;
  }

  /** Nothing while the memory beside the store is away; then it is asked again in the next round. */
  async function recall(book: string): Promise<Confirmed[]> {
    try {
      const elsewhere = (await memory?.recall(book)) ?? [];
      mustRecall = false;
      return elsewhere;
    } catch {
      mustRecall = true;
      return [];
    }
  }

  async function remember(): Promise<void> {
    if (!memory || ledgerId === null || unremembered === 0) return;
    const some = kept.latest(unremembered);
    unremembered = 0;
    try {
      await memory.remember(ledgerId, some);
    } catch {
      unremembered += some.length;
    }
  }

  return {
    async run(commands) {
      const answers = await ledger.run(commands);
      const confirmed = confirmedOf(commands, answers);
      for (const one of confirmed) kept.add(one);
      unremembered += confirmed.length;
      return answers;
    },
    timeline: () => place?.timeline ?? Number.NaN,
    async stop() {
      await rounds.stop();
      await remember();
    },
  };
}

function confirmedOf(commands: readonly Command[], answers: readonly Answer[]): Confirmed[] {
  return commands.flatMap(({ verb, requestId, organizationId }, position) => {
    const answer = answers[position]!;
    if (verb !== "settle" || answer.answer !== "settled") return [];
    return [{ requestId, organizationId, charged: answer.charged }];
  });
}

const isSame = (one: Place, other: Place) => one.server === other.server && one.timeline === other.timeline;
