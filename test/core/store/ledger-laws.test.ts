// Compares the SQL of the ledger with a reference model in memory (ledger-model.ts) under random histories (sequences)
// of commands, clock changes, plans, anchors and extra usage. Every answer and every total must be equal.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { weekDays } from "../../../src/admin/store/calendar.ts";
import { noUsage, type Usage } from "../../../src/core/inference/usage.ts";
import { uuidOf } from "../../../src/core/store/ids.ts";
import type { Admit, Command, UsageLimits } from "../../../src/core/store/ledger.ts";
import { adjust, setAnchor, setCalendar } from "../../../src/stores/postgres/ledger.ts";
import { databaseKinds, holds, times } from "../../harness/depth.ts";
import { amount, batchOf, extraUsage, lease, recovery, setExtra, time } from "./law-steps.ts";
import { comparable, LedgerModel, lateIdOf, type ModelOrganization, sumOf } from "./ledger-model.ts";
import {
  admitOf,
  checkpointOf,
  expectBalanced,
  growOf,
  ledgerForTests,
  newRequestId,
  settleOf,
  unlimited,
} from "./ledger-stores.ts";
import { hasCalendar, withAnchor, withCalendar } from "./windows-model.ts";

const limits: fc.Arbitrary<UsageLimits> = fc.record({
  session: amount,
  week: amount,
  month: amount,
  concurrentRequests: fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 4 })),
});
const tokens = fc.integer({ min: 0, max: 60 });
const usage: fc.Arbitrary<Usage> = fc.record({
  inputTokens: tokens,
  cachedInputTokens: tokens,
  cacheWriteTokens: tokens,
  outputTokens: tokens,
  reasoningTokens: tokens,
  source: fc.constantFrom("reported", "counted", "estimated"),
});
/** One of twelve requests, of which the first eight belong to one organization. */
const which = fc.integer({ min: 0, max: 11 });
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      verb: fc.constant("admit" as const),
      which,
      plan: fc.integer({ min: 0, max: 1 }),
      inputNanos: fc.integer({ min: 0, max: 800 }),
      price: fc.constantFrom(0, 1000, 7300),
      outputTokens: fc.integer({ min: 1, max: 200 }),
      least: fc.integer({ min: 1, max: 200 }),
      lease_ms: lease,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      verb: fc.constant("grow" as const),
      which,
      number: fc.integer({ min: 1, max: 4 }),
      plan: fc.integer({ min: 0, max: 1 }),
      nanosTotal: fc.integer({ min: 0, max: 4000 }),
      least: fc.integer({ min: 0, max: 4000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      verb: fc.constant("checkpoint" as const),
      which,
      number: fc.integer({ min: 1, max: 5 }),
      usage,
      lease_ms: lease,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      verb: fc.constant("settle" as const),
      which,
      plan: fc.integer({ min: 0, max: 1 }),
      usage,
      nanos: fc.integer({ min: 0, max: 3000 }),
    }),
  },
);
const step = fc.oneof(
  { weight: 8, arbitrary: batchOf(command) },
  { weight: 3, arbitrary: time },
  { weight: 1, arbitrary: recovery },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("plan" as const), plan: fc.integer({ min: 0, max: 1 }), limits }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("anchor" as const),
      at_ms: fc.integer({ min: Date.UTC(2025, 0, 1), max: Date.UTC(2027, 0, 1) }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("calendar" as const),
      calendar: fc.oneof(
        fc.constant(null),
        fc.record({
          zone: fc.constantFrom("Europe/Berlin", "Atlantic/Azores", "Australia/Lord_Howe", "Africa/Cairo"),
          weekStarts: fc.constantFrom(...weekDays),
          monthStarts: fc.integer({ min: 1, max: 31 }),
        }),
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("adjust" as const),
      window: fc.constantFrom("session" as const, "week", "month", "extra"),
      nanos: fc.integer({ min: -3000, max: 3000 }),
    }),
  },
  { weight: 1, arbitrary: extraUsage },
);
const history = fc.record({
  anchorAt_ms: fc.integer({ min: Date.UTC(2025, 0, 1), max: Date.UTC(2026, 0, 31) }),
  plans: fc.tuple(limits, limits),
  steps: fc.array(step, { minLength: 5, maxLength: 40 }),
});

const runs = { postgres: times(5, 40), pglite: times(4, 40) };

describe.each(databaseKinds(import.meta.path))("the ledger's laws on %s", (name) => {
  const { store, book } = ledgerForTests(name, { isBalanced: false });
  test("any history of commands is answered and booked as the rules say", async () => {
    await holds(
      fc.asyncProperty(history, async ({ anchorAt_ms, plans, steps }) => {
        let now_ms = Date.UTC(2026, 1, 27, 12);
        const first = {
          at_ms: anchorAt_ms,
          weekFrom_ms: Number.NEGATIVE_INFINITY,
          monthFrom_ms: Number.NEGATIVE_INFINITY,
        };
        const organizations = [await newOrganization(anchorAt_ms), await newOrganization(anchorAt_ms)];
        const known = new Map<string, ModelOrganization>(
          organizations.map((id) => [id, { anchors: [first], extra: { enabled: false, capNanos: null } }]),
        );
        const model = new LedgerModel(known, () => now_ms);
        const requests = Array.from({ length: 12 }, (_, index) => admitOf(organizations[index < 8 ? 0 : 1]!));
        const current = [...plans];
        await store.setClock(new Date(now_ms));

        for (const one of steps) {
          switch (one.kind) {
            case "batch": {
              const commands = one.commands.map((asked) => commandOf(asked, requests, current));
              expect(comparable(await book.run(commands))).toEqual(comparable(model.run(commands)));
              break;
            }
            case "time":
              now_ms += one.by_ms;
              await store.setClock(new Date(now_ms));
              break;
            case "recover":
              expect((await book.recover(1000)).settled).toBe(model.recover(1000));
              break;
            case "plan":
              current[one.plan] = one.limits;
              break;
            case "anchor": {
              const organization = known.get(organizations[0]!)!;
              // A change of the anchor under a calendar is refused before the ledger is asked.
              if (hasCalendar(organization.anchors, now_ms)) break;
              organization.anchors = withAnchor(organization.anchors, one.at_ms, now_ms);
              const effectiveAt = await setAnchor(store.db, organizations[0]!, new Date(one.at_ms));
              expect(effectiveAt?.getTime()).toBe(organization.anchors.at(-1)!.monthFrom_ms);
              break;
            }
            case "calendar": {
              const organization = known.get(organizations[0]!)!;
              const isUsed = await hasRow(organizations[0]!);
              const after = isUsed
                ? withCalendar(organization.anchors, one.calendar, now_ms)
                : [{ ...first, at_ms: organization.anchors.at(-1)!.at_ms, calendar: one.calendar }];
              organization.anchors = after ?? organization.anchors;
              const effectiveAt = await setCalendar(store.db, organizations[0]!, one.calendar);
              expect(effectiveAt?.getTime()).toBe(isUsed ? after?.at(-1)?.monthFrom_ms : now_ms);
              break;
            }
            case "adjust": {
              const entryId = newRequestId();
              const added = () => adjust(store.db, entryId, organizations[0]!, one.window, one.nanos);
              const expected = model.adjust(entryId, organizations[0]!, one.window, one.nanos);
              // An adjustment that is sent twice counts once.
              expect([await added(), await added()]).toEqual([expected, expected]);
              break;
            }
            case "extra":
              known.get(organizations[0]!)!.extra = await setExtra(store, organizations[0]!, one);
              break;
          }
        }

        for (const organization of organizations) {
          expect(await book.windows(organization, unlimited)).toEqual(model.readings(organization, unlimited));
        }
        for (const { organizationId, requestId } of requests) {
          const receipt = await book.receipt(organizationId, requestId);
          const record = model.records.get(requestId);
          const late = model.records.get(lateIdOf(requestId));
          const charged = record && record.charged + (late?.charged ?? 0);
          expect(receipt?.endedAt ? receipt.nanos.charged : null).toBe(charged ?? null);
          expect(receipt?.settledLateAt !== null && receipt?.settledLateAt !== undefined).toBe(late !== undefined);
          expect(receipt?.endedAt ? receipt.recovered : null).toBe(record?.recovered ?? null);
          if (receipt?.endedAt)
            expect(tokensOf(receipt.usage)).toEqual(tokensOf(sumOf(record!.usage, late?.usage ?? noUsage)));
          expect(receipt?.outcome === "running").toBe(model.holds.has(requestId));
        }
        await expectBalanced(book);
        await store.setClock(new Date(now_ms + 1e11));
        await book.recover(1000); // The next history begins without running requests.
      }),
      runs[name],
    );
  }, 180_000);

  /** Whether a window of the organization was ever opened: before that, a new calendar applies at once. */
  const hasRow = async (id: string) => {
    const rows = await store.db.query("select from usage_now where subject_id = $1", [uuidOf(id, "org_")]);
    return rows.length > 0;
  };
  const newOrganization = (anchorAt_ms: number) => store.newOrganization({ anchorAt: new Date(anchorAt_ms) });
});

function tokensOf({ source: _, ...counts }: Usage) {
  return counts;
}

type GeneratedCommand = typeof command extends fc.Arbitrary<infer T> ? T : never;

function commandOf(asked: GeneratedCommand, requests: readonly Admit[], plans: UsageLimits[]): Command {
  const request = requests[asked.which]!;
  if (asked.verb === "checkpoint") {
    const { number, lease_ms } = asked;
    return checkpointOf(request, asked.usage, { number, lease_ms });
  }
  const limits = plans[asked.plan]!;
  switch (asked.verb) {
    case "admit": {
      const { inputNanos, outputTokens, lease_ms } = asked;
      const prices = { ...request.prices, output: asked.price };
      const outputTokens_min = Math.min(outputTokens, asked.least);
      return { ...request, prices, limits, inputNanos, outputTokens, outputTokens_min, lease_ms };
    }
    case "grow": {
      const { number, nanosTotal, least } = asked;
      return growOf(request, nanosTotal, Math.min(least, nanosTotal), { number, limits });
    }
    case "settle":
      return settleOf({ ...request, limits }, asked.nanos, { usage: asked.usage });
  }
}
