/**
 * Notices that the store was set back to an earlier state. The last settlements that were confirmed to this node are
 * kept in a memory outside the ledger. Every second, in the background, the store is asked on which server it runs and
 * whether it has the last of these settlements. If that settlement is missing, or the store runs on another server, all
 * kept settlements are looked up, those that other nodes kept included (docs/design/metering.md, A store that wakes up
 * in the past).
 */
import type { Command, Ledger, LedgerAnswer } from "../../core/store/ledger.ts";
import { repeating } from "../../core/time/clock.ts";
import { RecentReceipts } from "./recent-receipts.ts";
import type { Confirmed, Look, LostReceipts, ReceiptMemory, StoreServer } from "./store/lost.ts";

export type ReceiptWatch = ReturnType<typeof receiptWatch>;

export interface Moved {
  from: StoreServer;
  to: StoreServer;
}

export interface ReceiptWatchParts {
  ledger: Pick<Ledger, "run">;
  store: LostReceipts;
  memory: ReceiptMemory | null;
  /** Called when the store runs on another server or timeline than before. */
  moved: (moved: Moved) => void;
  /** Called with the confirmed settlements that the store has lost. Each is reported by only one node of the fleet. */
  lost: (lost: Confirmed[]) => void;
  /** Called once for each outage of the store, or of the memory outside the ledger. */
  failed: (cause: unknown) => void;
  every_ms?: number;
}

/** The number of settlements that are kept: the last ten seconds, at 2,000 settlements a second. */
const kept_max = 20_000;
const every_ms = 1_000;

export function receiptWatch(parts: ReceiptWatchParts) {
  const { ledger, store, memory } = parts;
  const kept = new RecentReceipts(kept_max);
  /** How many of the latest receipts have not been written to the outside memory yet. */
  let unremembered = 0;
  let hasBegun = false;
  /** Whether the receipts in the outside memory still have to be compared with the store. */
  let mustRecall = false;
  let isAway = false;
  let place: StoreServer | null = null;
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

  /**
   * The server on which the store ran before, if it runs on another one now, as this node or an earlier process has
   * seen; else null.
   */
  function movement(seen: Look): StoreServer | null {
    if (place && seen.place && !isSame(place, seen.place)) return place;
    return seen.movedFrom;
  }

  /** The receipts that the store lacks and that no node had reported yet. */
  async function compare({ ledgerId: book, place: at }: Look, withKept: boolean): Promise<Confirmed[]> {
    const elsewhere = await recall(book);
    const all = new Map([...elsewhere, ...(withKept ? kept.latest() : [])].map((one) => [one.requestId, one]));
    const { absent, noted } = await store.compare([...all.values()], at);
    if (absent.length > 0) kept.forget(new Set(absent.map(({ requestId }) => requestId)));
    return noted;
  }

  /** The receipts in the memory outside the ledger. Empty while that memory is away; the next round tries again. */
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
    /** Runs commands in the ledger, and records the settlements that it confirms. */
    async run(commands: readonly Command[]) {
      const answers = await ledger.run(commands);
      const confirmed = confirmedOf(commands, answers);
      for (const one of confirmed) kept.add(one);
      unremembered += confirmed.length;
      return answers;
    },
    /** The timeline of the store at the last check; NaN if unknown. */
    timeline: () => place?.timeline ?? Number.NaN,
    async stop() {
      await rounds.stop();
      await remember();
    },
  };
}

function confirmedOf(commands: readonly Command[], answers: readonly LedgerAnswer[]): Confirmed[] {
  const confirmed: Confirmed[] = [];
  for (let position = 0; position < commands.length; position++) {
    const { verb, requestId, organizationId } = commands[position]!;
    const answer = answers[position]!;
    if (verb !== "settle") continue;
    // A late settlement (another node had settled the request) adds a record like any other, under its own id.
    if (answer.answer === "late")
      confirmed.push({ requestId: answer.entryId, organizationId, charged: answer.charged });
    else if (answer.answer === "settled") confirmed.push({ requestId, organizationId, charged: answer.charged });
  }
  return confirmed;
}

const isSame = (one: StoreServer, other: StoreServer) => one.server === other.server && one.timeline === other.timeline;
