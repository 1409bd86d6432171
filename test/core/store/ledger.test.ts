// The guarantees of every ledger, on every store.

import { afterAll, describe, expect, test } from "bun:test";
import { noUsage } from "../../../src/core/inference/usage.ts";
import { uuidOf } from "../../../src/core/store/ids.ts";
import {
  type Admit,
  type LedgerAnswer,
  nanos_max,
  type Recovered,
  type UsageLimits,
  window_nanos_max,
} from "../../../src/core/store/ledger.ts";
import { adjust, ledger, setAnchor } from "../../../src/stores/postgres/ledger.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { until } from "../../harness/until.ts";
import {
  admitOf,
  checkpointOf,
  growOf,
  hours,
  ledgerForTests,
  newRequestId,
  noon,
  requestIdAt,
  settleOf,
  unlimited,
} from "./ledger-stores.ts";

const limited = (change: Partial<UsageLimits>): UsageLimits => ({ ...unlimited, ...change });

describe.each(databaseKinds(import.meta.path))("the ledger on %s", (name) => {
  // No full check: it would report the records of the month whose partition a test detaches and drops.
  afterAll(async () => {
    expect(await book.check()).toEqual([]);
    expect(await book.audit()).toMatchObject({ differing: 0 });
  });
  const { store, book, run, serve, admit } = ledgerForTests(name, { clock: noon, isBalanced: false });

  test("an organization without limits has windows all the same; its session is opened by the first admission and never moves", async () => {
    const organization = await store.newOrganization();
    const idle = await book.windows(organization, unlimited);
    expect(idle.session).toMatchObject({ used: 0, limit: null, resetAt: hours(5) });
    await store.setClock(hours(1));
    expect((await book.windows(organization, unlimited)).session.resetAt).toEqual(hours(6));

    const first = admitOf(organization);
    expect(await admit(first)).toMatchObject({ answer: "granted", nanos: 1000, outputTokens: 90, source: "plan" });
    await store.setClock(hours(3));
    const later = await admit(admitOf(organization));
    expect(later).toMatchObject({
      windows: { session: { startsAt: hours(1), resetAt: hours(6), used: 0, held: 1000 } },
    });
    expect(await run(settleOf(first, 700))).toEqual({ answer: "settled", charged: 700, uncharged: 0 });
    expect(await book.windows(organization, unlimited)).toMatchObject({
      session: { used: 700, held: 1000, resetAt: hours(6) },
      week: {
        used: 700,
        held: 1000,
        startsAt: new Date("2026-03-07T10:00:00Z"),
        resetAt: new Date("2026-03-14T10:00:00Z"),
      },
      month: {
        used: 700,
        held: 1000,
        startsAt: new Date("2026-02-28T10:00:00Z"),
        resetAt: new Date("2026-03-31T10:00:00Z"),
      },
    });
    await store.setClock(hours(6));
    expect((await book.windows(organization, unlimited)).session).toMatchObject({
      used: 0,
      held: 0,
      resetAt: hours(11),
    });
  });

  test("no sum of nanos shuts an organization out: a window takes 2^53 - 1 and no more, also where no plan limits it", async () => {
    const organization = await store.newOrganization();
    const dear = { inputNanos: nanos_max, outputTokens: 0, outputTokens_min: 0 };
    const admitted: [Admit, string][] = [];
    for (let request = 0; request < 10; request++) {
      const command = admitOf(organization, dear);
      admitted.push([command, (await admit(command)).answer]);
    }
    expect(admitted.map(([, answer]) => answer)).toEqual([...Array(9).fill("granted"), "reserved"]);
    for (const [command] of admitted.slice(0, 9)) await run(settleOf(command, nanos_max));
    expect(await admit(admitOf(organization, dear))).toMatchObject({
      answer: "exhausted",
      kinds: ["month", "week", "session"],
      windows: { session: { used: 9 * nanos_max, limit: window_nanos_max } },
    });
    // If an engine exceeds a small hold, the charge is limited to the nanos that the window has left.
    const small = admitOf(organization, { inputNanos: 1, outputTokens: 0, outputTokens_min: 0 });
    expect(await admit(small)).toMatchObject({ answer: "granted", windows: { month: { limit: null } } });
    const room = window_nanos_max - 9 * nanos_max;
    expect(await run(settleOf(small, nanos_max))).toEqual({
      answer: "settled",
      charged: room,
      uncharged: nanos_max - room,
    });
    expect(await book.receipt(organization, small.requestId)).toMatchObject({
      windows: { session: { limit: null } },
    });
    expect(await adjust(store.db, newRequestId(), organization, "month", nanos_max)).toBe(0);
    expect((await book.windows(organization, unlimited)).month).toMatchObject({ used: window_nanos_max, held: 0 });
    // A window that is used up to its bound is freed by an adjustment, or by its end.
    expect(await adjust(store.db, newRequestId(), organization, "month", -nanos_max)).toBe(-nanos_max);
    expect(await book.check()).toEqual([]);
  });

  test("a report that was not taken as it is stands in the record, whatever the engine wrote", async () => {
    const organization = await store.newOrganization();
    const command = admitOf(organization);
    const said = { output_tokens: '"{}\\\',\\u0000(NULL)"', prompt_tokens: 1e300 };
    const reportRejected = { output: "malformed", said } as const;
    await serve(command, 700, { reportRejected });
    expect(await book.receipt(organization, command.requestId)).toMatchObject({ reportRejected });
    const plain = admitOf(organization);
    await serve(plain, 700);
    expect((await book.receipt(organization, plain.requestId))?.reportRejected).toBeNull();
  });

  test("a request leaves one record, and its receipt says what the book knows, running and ended", async () => {
    const organization = await store.newOrganization();
    const command = admitOf(organization, { limits: limited({ session: 10_000 }) });
    await admit(command);
    expect(await book.receipt(organization, command.requestId)).toMatchObject({
      outcome: "running",
      endedAt: null,
      createdAt: noon,
      nanos: { held: 1000, charged: 0 },
      windows: { session: { limit: 10_000, usedBefore: 0, usedAfter: null, resetAt: hours(5) } },
    });
    await store.setClock(hours(1));
    const usage = {
      inputTokens: 5,
      cachedInputTokens: 6,
      cacheWriteTokens: 7,
      outputTokens: 8,
      reasoningTokens: 3,
      source: "reported",
    } as const;
    await run(settleOf(command, 105, { usage }));
    const receipt = await book.receipt(organization, command.requestId);
    expect(receipt).toMatchObject({
      requestId: command.requestId,
      organizationId: organization,
      keyId: command.keyId,
      model: "acme/writer-1",
      operation: "chat.completions",
      stream: true,
      createdAt: noon,
      endedAt: hours(1),
      outcome: "completed",
      recovered: false,
      usage,
      prices: command.prices,
      nanos: { held: 1000, charged: 105, uncharged: 0 },
      source: "plan",
      windows: { session: { usedBefore: 0, usedAfter: 105 }, week: { limit: null, usedAfter: 105 } },
      route: { upstream: "main", attempts: 1, firstPart_ms: 12 },
    });
    expect(await book.receipt(await store.newOrganization(), command.requestId)).toBeNull();
    expect(await book.receipt(organization, newRequestId())).toBeNull();
  });

  test("commands that are doubled or late change nothing twice", async () => {
    const organization = await store.newOrganization();
    const command = admitOf(organization, { limits: limited({ session: 1000 }) });
    const granted = await admit(command);
    expect(granted).toMatchObject({ answer: "granted", windows: { session: { used: 0, held: 0 } } });
    expect(await admit(command)).toEqual(granted);
    const settle = settleOf(command, 400);
    const checkpoint = checkpointOf(command, {});
    const grow = growOf(command, 1000);
    expect(await run(grow)).toEqual({ answer: "granted", nanos: 1000 });
    expect(await run(checkpoint)).toEqual({ answer: "extended" });
    expect(await run(settle)).toEqual({ answer: "settled", charged: 400, uncharged: 0 });
    expect(await run(settle)).toEqual({ answer: "already" });
    expect(await admit(command)).toEqual({ answer: "over" });
    expect(await run(grow)).toEqual({ answer: "gone" });
    expect(await run(checkpoint)).toEqual({ answer: "gone" });
    expect((await book.windows(organization, command.limits)).session).toMatchObject({ used: 400, held: 0 });
  });

  test("a review that comes twice takes nothing back that its node was answered", async () => {
    const organization = await store.newOrganization();
    const command = admitOf(organization, { limits: limited({ session: 2000 }) });
    const other = admitOf(organization, { limits: command.limits });
    const { nanos } = (await admit(command)) as { nanos: number };
    const review = (number: number, session: number) =>
      run(growOf(command, nanos, 10, { number, limits: limited({ session }) }));
    // Under a lowered plan the hold shrinks to the nanos that are left; then another request takes those that it gave
    // back.
    expect(await review(1, 800)).toEqual({ answer: "granted", nanos: 800 });
    await admit(other);
    expect(await review(1, 800)).toEqual({ answer: "granted", nanos: 800 });
    // Review 2 was overtaken by review 3, which took nothing back.
    expect(await review(3, 2000)).toEqual({ answer: "granted", nanos: 1000 });
    expect(await review(2, 800)).toEqual({ answer: "granted", nanos: 1000 });
    expect(await review(4, 800)).toEqual({ answer: "granted", nanos: 10 });
    await book.run([settleOf(command, 5), settleOf(other, 5)]);
    expect(await book.check()).toEqual([]);
  });

  test("commands of one request in one batch are carried out in their order", async () => {
    const organization = await store.newOrganization();
    const command = admitOf(organization);
    const settle = settleOf(command, 10);
    expect((await book.run([command, command, settle, command, settle])).map((one) => one.answer)).toEqual([
      "granted",
      "granted",
      "settled",
      "over",
      "already",
    ]);
  });

  test("a batch of many organizations keeps the book of each, however often it is written", async () => {
    const organizations = await Promise.all(Array.from({ length: 6 }, () => store.newOrganization()));
    // There are so many batches that a row is not only updated in place, but also written anew (after 32 updates).
    for (let round = 0; round < 20; round++) {
      const admits = organizations.map((id) => admitOf(id));
      expect(new Set((await book.run(admits)).map((one) => one.answer))).toEqual(new Set(["granted"]));
      await book.run(admits.map((one, at) => settleOf(one, 100 + at)));
    }
    for (const [at, id] of organizations.entries()) {
      const { session, week, month } = await book.windows(id, unlimited);
      for (const { used, held } of [session, week, month])
        expect({ used, held }).toEqual({ used: 20 * (100 + at), held: 0 });
    }
  }, 60_000);

  test("a request that was given up before its admission arrived never runs, and is charged nothing", async () => {
    const organization = await store.newOrganization();
    const command = admitOf(organization);
    expect(await run(settleOf(command, 0, { outcome: "failed", errorCode: "storage_unavailable" }))).toMatchObject({
      answer: "settled",
      charged: 0,
    });
    expect(await admit(command)).toEqual({ answer: "over" });
    const receipt = await book.receipt(organization, command.requestId);
    expect(receipt).toMatchObject({ outcome: "failed", errorCode: "storage_unavailable", windows: null });
    expect((await book.windows(organization, unlimited)).session.used).toBe(0);
  });

  test("a hold shrinks to what is left, down to its least; a refusal then distinguishes settled use from others' holds", async () => {
    const organization = await store.newOrganization();
    // Five nanos are too few for one more token, and stay unused.
    const limits = limited({ session: 2005, week: 5000 });
    const shrinking = () => admitOf(organization, { limits, outputTokens: 150, outputTokens_min: 20 });
    const first = shrinking();
    expect(await admit(first)).toMatchObject({ answer: "granted", outputTokens: 150, nanos: 1600 });
    const second = shrinking();
    expect(await admit(second)).toMatchObject({ answer: "granted", outputTokens: 30, nanos: 400 });
    expect(await admit(shrinking())).toMatchObject({ answer: "reserved", kinds: ["session"] });
    await book.run([settleOf(first, 1500), settleOf(second, 300)]);
    expect(await admit(shrinking())).toMatchObject({
      answer: "exhausted",
      kinds: ["session"],
      extra: { enabled: false },
    });
    const small = admitOf(organization, { limits, inputNanos: 0, outputTokens: 20, outputTokens_min: 20 });
    expect(await admit(small)).toMatchObject({ answer: "granted", nanos: 200 });
    await run(settleOf(small, 200));
    // The session is used up; another organization is not affected.
    expect((await book.windows(organization, limits)).session).toMatchObject({ used: 2000, held: 0 });
    expect(await admit(admitOf(await store.newOrganization(), { limits }))).toMatchObject({ answer: "granted" });
  });

  test("concurrency counts what runs, and a refusal in a batch fails nothing beside it", async () => {
    const [organization, other] = [await store.newOrganization(), await store.newOrganization()];
    const limits = limited({ concurrentRequests: 2 });
    const commands = [organization, organization, organization, other].map((one) => admitOf(one, { limits }));
    const answers = await book.run(commands);
    expect(answers.map((one) => one.answer)).toEqual(["granted", "granted", "concurrency", "granted"]);
    await run(settleOf(commands[0]!, 1));
    expect(await admit(admitOf(organization, { limits }))).toMatchObject({ answer: "granted" });
    expect(await admit(admitOf(organization, { limits }))).toMatchObject({ answer: "concurrency" });
  });

  test("a hold grows to a new total, to what is left where that is of use, and not past any window's end", async () => {
    const organization = await store.newOrganization();
    const limits = limited({ week: 3000 });
    const command = admitOf(organization, { limits });
    await admit(command);
    const grow = (nanosTotal: number, nanosTotal_min: number) => run(growOf(command, nanosTotal, nanosTotal_min));
    expect(await grow(2000, 2000)).toEqual({ answer: "granted", nanos: 2000 });
    expect(await grow(2000, 2000)).toEqual({ answer: "granted", nanos: 2000 });
    expect(await grow(4000, 2100)).toEqual({ answer: "granted", nanos: 3000 });
    expect(await grow(4000, 2100)).toEqual({ answer: "granted", nanos: 3000 });
    expect(await grow(4000, 3001)).toMatchObject({
      answer: "full",
      limits: [{ limitedBy: "organization", window: "week" }],
    });
    expect((await book.windows(organization, limits)).week).toMatchObject({ held: 3000 });
    await run(settleOf(command, 2500));
    expect((await book.windows(organization, limits)).week).toMatchObject({ used: 2500, held: 0 });
  });

  for (const kind of ["session", "week", "month"] as const) {
    test(`charged is what fits under the limit of the ${kind} beside what others hold; the rest stands as uncharged`, async () => {
      const organization = await store.newOrganization();
      const limits = limited({ [kind]: 2500 });
      const [one, other] = [admitOf(organization, { limits }), admitOf(organization, { limits })];
      await book.run([one, other]);
      expect(await run(settleOf(one, 2000))).toEqual({ answer: "settled", charged: 1500, uncharged: 500 });
      expect(await run(settleOf(other, 1000))).toEqual({ answer: "settled", charged: 1000, uncharged: 0 });
      expect(await book.receipt(organization, one.requestId)).toMatchObject({
        nanos: { held: 1000, charged: 1500, uncharged: 500 },
      });
    });
  }

  test("a limit that was lowered meanwhile is not passed, and counts at once", async () => {
    const organization = await store.newOrganization();
    const commands = [admitOf(organization), admitOf(organization)];
    await book.run(commands);
    const limits = limited({ session: 1200 });
    expect(await run(settleOf({ ...commands[0]!, limits }, 1000))).toMatchObject({ charged: 1000 });
    expect(await run(settleOf({ ...commands[1]!, limits }, 1000))).toMatchObject({ charged: 200, uncharged: 800 });
    expect(await admit(admitOf(organization, { limits }))).toMatchObject({ answer: "exhausted" });
  });

  test("extra usage takes what the plan cannot, up to its cap; it consumes no window, and opens the session as any grant does", async () => {
    const organization = await store.newOrganization({ extra: { enabled: true, capNanos: 1500 } });
    const limits = limited({ week: 999 });
    const command = admitOf(organization, { limits });
    const granted = await admit(command);
    expect(granted).toMatchObject({ answer: "granted", source: "extra", nanos: 1000 });
    // The command is sent again, as after an answer that was lost.
    expect(await admit(command)).toEqual(granted);
    expect(await admit(admitOf(organization, { limits }))).toMatchObject({ answer: "reserved" });
    expect(await run(settleOf(command, 900))).toMatchObject({ charged: 900 });
    const refused = await admit(admitOf(organization, { limits }));
    expect(refused).toMatchObject({
      answer: "exhausted",
      extra: { enabled: true, capNanos: 1500, used: 900, held: 0 },
    });
    await store.setClock(hours(1));
    expect(await book.windows(organization, limits)).toMatchObject({
      session: { used: 0, startsAt: noon },
      week: { used: 0 },
    });
    expect(await book.receipt(organization, command.requestId)).toMatchObject({
      source: "extra",
      nanos: { charged: 900 },
    });
    // The cap of extra usage applies per month of the anchor.
    await store.setClock(new Date("2026-03-31T10:00:00Z"));
    expect(await admit(admitOf(organization, { limits }))).toMatchObject({ answer: "granted", source: "extra" });
  });

  test("extra usage that is off has no room for more, and what is held beyond its cap is given back", async () => {
    const organization = await store.newOrganization({ extra: { enabled: true, capNanos: null } });
    const command = admitOf(organization, { limits: limited({ week: 999 }) });
    expect(await admit(command)).toMatchObject({ answer: "granted", source: "extra", nanos: 1000 });
    const switchOff = (capNanos: number | null) =>
      store.db.query("update organization set extra_usage_enabled = false, extra_usage_cap_nanos = $2 where id = $1", [
        uuidOf(organization, "org_"),
        capNanos,
      ]);
    const grow = (number: number) => run(growOf(command, 2000, 500, { number }));
    await switchOff(null);
    expect(await grow(1)).toEqual({ answer: "granted", nanos: 1000 });
    await switchOff(700);
    expect(await grow(2)).toEqual({ answer: "granted", nanos: 700 });
    await switchOff(1);
    expect(await grow(3)).toEqual({ answer: "granted", nanos: 500 });
  });

  test("a request belongs to the windows it was admitted in, also when it ends in later ones", async () => {
    const organization = await store.newOrganization();
    const command = admitOf(organization, { limits: limited({ session: 1000 }) });
    await admit(command);
    await store.setClock(hours(5));
    const next = admitOf(organization, { limits: command.limits });
    expect(await admit(next)).toMatchObject({
      answer: "granted",
      windows: { session: { startsAt: hours(5), held: 0 } },
    });
    await run(settleOf(command, 800));
    expect((await book.windows(organization, command.limits)).session).toMatchObject({ used: 0, held: 1000 });
    expect(await book.receipt(organization, command.requestId)).toMatchObject({
      windows: { session: { startsAt: noon, usedAfter: 800 } },
    });
  });

  test("what is settled after its windows ended is booked there, from several batches, beside what others hold", async () => {
    const organization = await store.newOrganization();
    const commands = [admitOf(organization), admitOf(organization), admitOf(organization)];
    await book.run(commands);
    await store.setClock(hours(24 * 40));
    await admit(admitOf(organization));
    expect((await book.run(commands.slice(0, 2).map((one) => settleOf(one, 300)))).map((one) => one.answer)).toEqual([
      "settled",
      "settled",
    ]);
    await run(growOf(commands[2]!, 1500));
    expect(await book.check()).toEqual([]);
    await run(settleOf(commands[2]!, 1500));
    expect(await book.receipt(organization, commands[2]!.requestId)).toMatchObject({
      windows: { session: { startsAt: noon, usedAfter: 2100 }, month: { usedAfter: 2100 } },
    });
    expect(await book.windows(organization, unlimited)).toMatchObject({ month: { used: 0, held: 1000 } });
    expect(await book.check()).toEqual([]);
  });

  test("a store whose clock steps back finds the windows again that it had left, and each sum still agrees", async () => {
    const organization = await store.newOrganization();
    const spend = (nanos: number) => serve(admitOf(organization), nanos);
    await spend(100);
    const first = await book.windows(organization, unlimited);
    await store.setClock(hours(24 * 7));
    await spend(20);
    await store.setClock(hours(1));
    await spend(3);
    const again = await book.windows(organization, unlimited);
    expect(again.week).toEqual({ ...first.week, used: 103 });
    expect(again.month).toEqual({ ...first.month, used: 123 });
    await store.setClock(hours(24 * 7));
    expect((await book.windows(organization, unlimited)).week).toMatchObject({ used: 20, held: 0 });
    // After the clock steps back, a new session begins at the same millisecond as one that has ended, and shares its
    // window.
    await store.setClock(hours(24 * 14));
    const open = admitOf(organization);
    await admit(open);
    await store.setClock(hours(24 * 14 + 6));
    await run(settleOf(open, 7));
    await store.setClock(hours(24 * 14));
    await spend(1);
    expect((await book.windows(organization, unlimited)).session).toMatchObject({ used: 8, held: 0 });
    expect(await book.check()).toEqual([]);
  });

  /** Recovers the requests that other tests have left running, so that this test's sweep finds only its own. */
  const recoverTheRest = async () => {
    await store.setClock(hours(1000));
    await book.recover(1000);
    await store.setClock(noon);
  };

  test("a lapsed hold is settled at its last checkpoint, once; one whose lease was extended is left alone", async () => {
    await recoverTheRest();
    const organization = await store.newOrganization();
    const [gone, silent, alive] = [admitOf(organization), admitOf(organization), admitOf(organization)];
    await book.run([gone, silent, alive]);
    const usage = { ...noUsage, inputTokens: 100, outputTokens: 7, reasoningTokens: 4 };
    const checkpoint = (command: Admit, number: number, outputTokens: number, reasoningTokens = 4) =>
      checkpointOf(command, { ...usage, outputTokens, reasoningTokens }, { number });
    await book.run([checkpoint(gone, 2, 7)]);
    // Output tokens of a checkpoint stay counted, even if a later checkpoint reports fewer.
    await book.run([checkpoint(gone, 3, 6, 2)]);
    const overtaken = checkpoint(gone, 1, 5, 1);
    const others = { inputTokens: 9000, cachedInputTokens: 9000, cacheWriteTokens: 9000 };
    await book.run([{ ...overtaken, usage: { ...overtaken.usage, ...others } }]);
    expect((await book.recover(100)).settled).toBe(0);
    await store.setClock(new Date(noon.getTime() + 40_000));
    await book.run([checkpoint(alive, 1, 3)]);
    await store.setClock(new Date(noon.getTime() + 60_000));
    expect((await book.recover(0)).settled).toBe(0);
    // A clock beyond the range was set forward; one before the range was set back, and perhaps forward again.
    const around = (from_ms: number, to_ms: number) => ({
      earliest: new Date(noon.getTime() + from_ms),
      latest: new Date(noon.getTime() + to_ms),
    });
    for (const range of [around(0, 59_999), around(60_001, 120_000)])
      expect(await book.recover(100, range)).toEqual({ settled: 0, at: new Date(noon.getTime() + 60_000) });
    expect((await book.recover(100)).settled).toBe(2);
    expect((await book.recover(100)).settled).toBe(0);
    expect(await book.receipt(organization, gone.requestId)).toMatchObject({
      recovered: true,
      outcome: "failed",
      usage,
      nanos: { charged: 170 },
    });
    expect(await book.receipt(organization, silent.requestId)).toMatchObject({
      recovered: true,
      nanos: { charged: 0 },
    });
    expect(await run(settleOf(gone, 170))).toEqual({ answer: "already" });
    expect((await book.windows(organization, unlimited)).session).toMatchObject({ used: 170, held: 1000 });
    await run(settleOf(alive, 30));
  });

  test("the record of a recovered request has everything that its admission named", async () => {
    await recoverTheRest();
    const prices = { input: 1000, cachedInput: 200, cacheWrite: 2000, output: 10_000, search: 7_000_000 };
    const admitted = { operation: "rerank", model: "acme/ranker-1", stream: false, prices, inputs: 3 } as const;
    const organization = await store.newOrganization();
    const gone = admitOf(organization, admitted);
    await book.run([gone]);
    await store.setClock(new Date(noon.getTime() + 60_000));
    expect((await book.recover(100)).settled).toBe(1);
    const { requestId, keyId } = gone;
    const known = { requestId, keyId, source: "plan", recovered: true, createdAt: noon };
    expect(await book.receipt(organization, requestId)).toMatchObject({ ...known, ...admitted });
  });

  test("where holds are charged whole, what nobody streamed still costs nothing: it was not delivered", async () => {
    await recoverTheRest();
    const organization = await store.newOrganization();
    const [streamed, collected] = [true, false].map((stream) => admitOf(organization, { stream })) as [Admit, Admit];
    await book.run([streamed, collected]);
    await store.setClock(new Date(noon.getTime() + 60_000));
    const charging = ledger(store.db, { recovery: "hold" });
    expect((await charging.recover(100)).settled).toBe(2);
    const charged = async ({ requestId }: Admit) => (await book.receipt(organization, requestId))?.nanos.charged;
    expect([await charged(streamed), await charged(collected)]).toEqual([1000, 0]);
    expect((await book.windows(organization, unlimited)).session).toMatchObject({ used: 1000, held: 0 });
  });

  /** Whether a statement waits for somebody else's lock. */
  const waits = async () => {
    const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    return (await store.db.query(waiting)).length > 0;
  };

  // The embedded database has one connection: there, nothing happens while a recovery waits.
  if (name === "postgres")
    test("a hold whose lease was extended while a recovery waited for the organization's lock is left alone", async () => {
      await recoverTheRest();
      const organization = await store.newOrganization();
      const command = admitOf(organization);
      await admit(command);
      await store.setClock(new Date(noon.getTime() + 60_000));
      let recovering: Promise<Recovered> | null = null;
      await (await store.another()).transaction(async (other) => {
        await other.query("select usage_lock(array[$1::uuid])", [uuidOf(organization, "org_")]);
        recovering = book.recover(100);
        await until(waits, 5_000, "the recovery to wait");
        await other.query("update usage_hold set lease_until = $1 where request_id = $2", [
          new Date(noon.getTime() + 120_000),
          uuidOf(command.requestId, "req_"),
        ]);
      });
      expect((await recovering!).settled).toBe(0);
      expect(await run(settleOf(command, 10))).toMatchObject({ charged: 10 });
    });

  if (name === "postgres")
    test("a lease is extended that a sweep shortens at this moment, because the clock was set back", async () => {
      await recoverTheRest();
      const command = admitOf(await store.newOrganization());
      await admit(command);
      await store.setClock(hours(-6));
      let extending: Promise<LedgerAnswer> | null = null;
      await (await store.another()).transaction(async (other) => {
        await other.query("select usage_recover(100, false, '{}', null)");
        extending = run(checkpointOf(command, { outputTokens: 1 }));
        await until(waits, 5_000, "the checkpoint to wait");
      });
      expect(await extending!).toEqual({ answer: "extended" });
      expect(await run(settleOf(command, 10))).toMatchObject({ charged: 10 });
    });

  test("a lease of a clock that was set back since has its length from the next sweep on, and no less", async () => {
    await recoverTheRest();
    const organization = await store.newOrganization();
    const [dies, runs] = [admitOf(organization), admitOf(organization)];
    await admit(dies);
    await admit(runs);
    const at = (seconds: number) => store.setClock(new Date(noon.getTime() - 6 * 3_600_000 + seconds * 1000));
    await at(0);
    expect((await book.recover(100)).settled).toBe(0);
    await at(59);
    expect((await book.recover(100)).settled).toBe(0);
    await run(checkpointOf(runs, { outputTokens: 1 }));
    await at(61);
    expect((await book.recover(100)).settled).toBe(1);
    expect(await run(settleOf(dies, 0))).toMatchObject({ answer: "already" });
    expect(await run(settleOf(runs, 10))).toMatchObject({ charged: 10 });
  });

  test("a sweep finds who was running before, who came since, and within ten minutes those of slow clocks", async () => {
    await recoverTheRest();
    const sweeper = ledger(store.db, { recovery: "checkpoint" });
    const at = (minutes: number) => store.setClock(new Date(noon.getTime() + minutes * 60_000));
    const idAt = (minutes: number) => requestIdAt(new Date(noon.getTime() + minutes * 60_000));
    const organization = await store.newOrganization();
    const admitted = async (minutes: number, lease_min: number) => {
      const command = admitOf(organization, { requestId: idAt(minutes), lease_ms: lease_min * 60_000 });
      await admit(command);
      return command;
    };
    const ended = async (command: Admit) => (await book.receipt(organization, command.requestId))?.recovered;
    await at(0);
    const lasting = await admitted(0, 6);
    expect((await sweeper.recover(100)).settled).toBe(0);
    await at(5);
    const fresh = await admitted(5, 1);
    expect((await sweeper.recover(100)).settled).toBe(0);
    const slow = await admitted(3, 1);
    await at(6);
    expect((await sweeper.recover(100)).settled).toBe(2);
    expect([await ended(lasting), await ended(fresh), await ended(slow)]).toEqual([true, true, false]);
    await at(10);
    await sweeper.recover(100);
    await at(10.1);
    expect((await sweeper.recover(100)).settled).toBe(1);
    expect(await ended(slow)).toBe(true);
    await sweeper.close();
  });

  test("a new anchor moves no open window: it counts from the end of the running month", async () => {
    const organization = await store.newOrganization();
    const effectiveAt = new Date("2026-03-31T10:00:00Z");
    expect(await setAnchor(store.db, organization, new Date("2026-01-15T00:00:00Z"))).toEqual(effectiveAt);
    const before = await book.windows(organization, unlimited);
    expect(before.month.resetAt).toEqual(effectiveAt);
    await store.setClock(effectiveAt);
    const after = await book.windows(organization, unlimited);
    expect(after.month).toMatchObject({ startsAt: effectiveAt, resetAt: new Date("2026-04-15T00:00:00Z") });
    expect(after.week).toMatchObject({
      startsAt: new Date("2026-03-28T10:00:00Z"),
      resetAt: new Date("2026-04-04T10:00:00Z"),
    });
    await store.setClock(new Date("2026-04-04T10:00:00Z"));
    const week = (await book.windows(organization, unlimited)).week;
    expect(week).toMatchObject({
      startsAt: new Date("2026-04-04T10:00:00Z"),
      resetAt: new Date("2026-04-09T00:00:00Z"),
    });
    expect(await setAnchor(store.db, "org_00000000000070008000000000000000", noon)).toBeNull();
  });

  test("an operator's entry moves what was used of one window, down to nothing, and no boundary; the sums still agree", async () => {
    const organization = await store.newOrganization();
    const enter = (kind: "session" | "week" | "extra", nanos: number, id = newRequestId()) =>
      adjust(store.db, id, organization, kind, nanos);
    expect(await enter("session", -5)).toBeNull();
    await serve(admitOf(organization), 700);
    const before = await book.windows(organization, unlimited);
    const id = newRequestId();
    expect(await enter("session", -200, id)).toBe(-200);
    expect(await enter("session", -200, id)).toBe(-200);
    expect(await enter("week", -10_000)).toBe(-700);
    expect(await enter("extra", 30)).toBe(30);
    const after = await book.windows(organization, unlimited);
    expect([after.session.used, after.week.used, after.month.used]).toEqual([500, 0, 700]);
    expect(after.session.resetAt).toEqual(before.session.resetAt);
    expect(await book.check()).toEqual([]);
    expect(await book.receipt(organization, id)).toBeNull();
    expect(await adjust(store.db, newRequestId(), "org_00000000000070008000000000000000", "week", 1)).toBeNull();
  });

  test("an organization that is not known is named, and harms no other command", async () => {
    const nobody = "org_00000000000070008000000000000000";
    const answers = await book.run([admitOf(nobody), admitOf(await store.newOrganization())]);
    expect(answers.map((one) => one.answer)).toEqual(["unknown", "granted"]);
    expect(book.windows(nobody, unlimited)).rejects.toThrow(nobody);
  });

  test("any text can stand in a record, and numbers are exact to 10^15", async () => {
    for (const text of ['"', "\\", 'a,b)("{}', "", " ", "NULL", "\n\t", "ü😀", '\\"', "a\0b"]) {
      const organization = await store.newOrganization();
      const command = admitOf(organization, { model: text });
      const route = { upstream: text, attempts: 2, firstPart_ms: null };
      await serve(command, 1e15, { errorCode: text, route });
      const kept = text.replaceAll("\0", "\uFFFD");
      expect(await book.receipt(organization, command.requestId)).toMatchObject({
        model: kept,
        errorCode: kept,
        nanos: { charged: 1e15 },
        route: { ...route, upstream: kept },
      });
    }
  });

  /** Recovers everything, as a node does at its start. */
  const sweepAll = async () => {
    const node = ledger(store.db, { recovery: "checkpoint" });
    while ((await node.recover(1_000)).settled > 0);
    await node.close();
  };
  const partitionOf = async ({ requestId }: { requestId: string }) =>
    (
      await store.db.query<{ name: string }>(
        "select tableoid::regclass::text as name from usage_record where request_id = $1",
        [uuidOf(requestId, "req_")],
      )
    )[0]?.name;

  test.each(["1970-01-01", "2024-12-31", "2094-02-28"])(
    "a node whose clock says %s loses nothing: the month of its ids is made when a request of its ends",
    async (date) => {
      const organization = await store.newOrganization();
      const before = (await book.windows(organization, unlimited)).session.used;
      const [settled, lapsed, refused] = [requestIdAt(date), requestIdAt(date), requestIdAt(date)].map((requestId) =>
        admitOf(organization, { requestId, lease_ms: 1_000 }),
      );
      const honest = admitOf(organization);
      await book.run([settled!, lapsed!, honest]);
      // The settlements are in one batch with a request of a node whose clock is right.
      const answers = await book.run([settleOf(settled!, 5), settleOf(honest, 5), settleOf(refused!, 0)]);
      expect(answers.map(({ answer }) => answer)).toEqual(["settled", "settled", "settled"]);
      expect(await run(settleOf(settled!, 5))).toEqual({ answer: "already" });
      expect(await admit(refused!)).toEqual({ answer: "over" });
      await store.setClock(hours(1));
      await sweepAll();
      expect(await book.receipt(organization, lapsed!.requestId)).toMatchObject({ recovered: true });
      expect((await book.windows(organization, unlimited)).session.used).toBe(before + 10);
      // Retention goes by the end of a request, not by the date in its ID, so upkeep does not drop this record.
      await book.maintain();
      expect(await partitionOf(settled!)).toBe(`usage_record_${date.slice(0, 7).replace("-", "_")}`);
      expect(await book.check()).toEqual([]);
    },
  );

  test("what nobody has swept of a node whose clock is far off is swept into a month of its own", async () => {
    const organization = await store.newOrganization();
    const lapsed = admitOf(organization, { requestId: requestIdAt("1999-07-01"), lease_ms: 1_000 });
    await admit(lapsed);
    await store.setClock(hours(1));
    await sweepAll();
    expect(await partitionOf(lapsed)).toBe("usage_record_1999_07");
    const entry = requestIdAt("1998-07-01");
    expect(await adjust(store.db, entry, organization, "week", 7)).toBe(7);
    expect(await partitionOf({ requestId: entry })).toBe("usage_record_1998_07");
  });

  test("a month that left with a record of today comes back", async () => {
    const organization = await store.newOrganization();
    const command = admitOf(organization, { requestId: requestIdAt("1985-05-05") });
    await serve(command, 5);
    // The state that the upkeep leaves if it is interrupted.
    await store.db.exec("alter table usage_record detach partition usage_record_1985_05");
    expect(await partitionOf(command)).toBeUndefined();
    await book.maintain();
    expect(await partitionOf(command)).toBe("usage_record_1985_05");
  });

  test("records live in monthly partitions, made ahead; old ones are dropped, and past windows with them", async () => {
    const organization = await store.newOrganization();
    const partitions = async () =>
      (await store.db.query<{ name: string }>("select name from usage_partitions()")).map((one) => one.name);
    await store.setClock(new Date("2031-05-10T12:00:00Z"));
    expect(await book.maintain()).toEqual({ monthsAhead: 6, putOff: [] });
    const command = admitOf(organization, { requestId: requestIdAt("2031-05-10") });
    await serve(command, 5);
    expect(await partitionOf(command)).toBe("usage_record_2031_05");
    await store.setClock(new Date("2032-06-30T23:59:59Z"));
    await book.maintain();
    expect(await partitionOf(command)).toBe("usage_record_2031_05");
    await store.setClock(new Date("2032-07-01T00:00:00Z"));
    await admit(admitOf(organization));
    await book.maintain();
    expect(await partitionOf(command)).toBeUndefined();
    expect(await partitions()).not.toContain("usage_record_2031_05");
    const windows = "select 1 from usage_window where subject_id = $1 and ends_at < $2";
    const past = async () => store.db.query(windows, [uuidOf(organization, "org_"), new Date("2031-06-01T00:00:00Z")]);
    expect(await past()).not.toEqual([]);
    await store.setClock(new Date("2032-08-01T00:00:00Z"));
    await book.maintain();
    expect(await past()).toEqual([]);
  });

  test("a clock that is years ahead for some hours makes nothing old, and a long stop only delays what is", async () => {
    const organization = await store.newOrganization();
    const records = async () =>
      store.db.query("select 1 from usage_record where organization_id = $1", [uuidOf(organization, "org_")]);
    // Unlike setClock, this leaves the upkeep to find out.
    const maintained = async (at: string) => {
      await store.db.query("update test_clock set at = $1", [new Date(at)]);
      return book.maintain();
    };
    await store.setClock(new Date("2041-05-10T12:00:00Z"));
    await store.db.query("update usage_audit set upkept_at = null");
    await book.maintain();
    await serve(admitOf(organization, { requestId: requestIdAt("2041-05-10") }), 5);
    const jumped = (days: number) => [`what is old by a clock ${days} days ahead of the last upkeep`];
    // A day is gained an hour, by whatever node or start, and lost again as slowly.
    for (let round = 0; round < 3; round++)
      expect((await maintained("2045-05-10T12:00:00Z")).putOff).toEqual(jumped(1460));
    expect((await maintained("2045-05-10T13:00:00Z")).putOff).toEqual(jumped(1459));
    expect(await maintained("2041-05-10T13:00:00Z")).toMatchObject({ putOff: [] });
    expect((await maintained("2045-05-10T13:00:00Z")).putOff).toEqual(jumped(1459));
    expect(await maintained("2041-05-10T14:00:00Z")).toMatchObject({ putOff: [] });
    expect(await records()).toHaveLength(1);
    expect(await book.check(true)).toEqual([]);
    // The service stood still from 13 months before the record's end until a day after it.
    await store.db.query("update usage_audit set upkept_at = '2042-06-29T12:00:00Z'");
    await maintained("2042-07-02T12:00:00Z");
    expect(await records()).toHaveLength(1);
    await maintained("2042-07-02T13:00:00Z");
    expect(await records()).toEqual([]);
    // A clock that was half a year behind for a moment costs a day.
    await maintained("2042-01-02T13:00:00Z");
    expect((await maintained("2042-07-02T15:00:00Z")).putOff).toEqual(jumped(1));
    expect(await maintained("2042-07-02T16:00:00Z")).toMatchObject({ putOff: [] });
    await store.setClock(new Date("2043-01-01T00:00:00Z"));
    await book.maintain();
  });

  test("what was deleted while a clock was ahead is no difference after it was set back, nor an ID of a node's own far future", async () => {
    const organization = await store.newOrganization();
    const servedAt = async (at: string, idAt = at) => {
      await store.setClock(new Date(at));
      await serve(admitOf(organization, { requestId: requestIdAt(idAt) }), 5);
    };
    await servedAt("2050-06-15T12:00:00Z");
    await servedAt("2050-07-15T12:00:00Z", "2093-01-15T12:00:00Z");
    await servedAt("2051-05-10T12:00:00Z");
    expect(await book.check(true)).toEqual([]);
    await book.audit();
    // The clock has gained nearly four months, a day at a time. Records of 2050-06 are then gone, but not their windows.
    await store.setClock(new Date("2055-05-10T12:00:00Z"));
    await store.db.query("update usage_audit set upkept_at = '2051-08-31T12:00:00Z'");
    await book.maintain();
    await store.setClock(new Date("2051-05-10T13:00:00Z"));
    expect(
      await store.db.query("select 1 from usage_record where organization_id = $1", [uuidOf(organization, "org_")]),
    ).toHaveLength(2);
    expect(await book.check(true)).toEqual([]);
    expect(await book.audit()).toMatchObject({ differing: 0 });
    // What is younger is still compared.
    await store.db.query("update usage_day set nanos = nanos + 1 where starts_at > '2051-01-01'");
    expect(await book.check(true)).not.toEqual([]);
    await store.db.query("update usage_day set nanos = nanos - 1 where starts_at > '2051-01-01'");
    await store.setClock(new Date("2053-01-01T00:00:00Z"));
    await book.maintain();
    expect(await book.check(true)).toEqual([]);
  });
});
