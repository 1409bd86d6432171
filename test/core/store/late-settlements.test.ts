// Late settlements: another node has recovered a request, and then the request's own node reports the usage that it had
// forwarded.
import { describe, expect, test } from "bun:test";
import type { reportGroups } from "../../../src/admin/store/report.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import { bare } from "../../../src/core/store/ids.ts";
import type { Admit, Settle, SettleAnswer, UsageLimits } from "../../../src/core/store/ledger.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { requestList } from "../../../src/stores/postgres/request-list.ts";
import { databaseKinds } from "../../harness/depth.ts";
import {
  admitOf,
  checkpointOf,
  expectBalanced,
  expectChecked,
  ledgerForTests,
  newHex,
  noon,
  requestIdAt,
  settleOf,
  unlimited,
} from "./ledger-stores.ts";
import { limitModels } from "./model-limits.ts";
import { limitSubject, setBudget } from "./subject-limits.ts";

const after = (seconds: number) => new Date(noon.getTime() + seconds * 1_000);

describe.each(databaseKinds(import.meta.path))("late settlements on %s", (name) => {
  const { store, book, run, serve } = ledgerForTests(name, { clock: noon });
  /** The usage at the checkpoint: 100 nanos of input, and 70 of output. */
  const checkpointed = { ...noUsage, inputTokens: 100, outputTokens: 7 };
  /** Admits a request and writes its checkpoint; another node recovers it one lease later. */
  async function recovered(organization: string, change: Partial<Admit> = {}, node = book, said = checkpointed) {
    await store.setClock(noon);
    const command = admitOf(organization, { requestId: requestIdAt(noon), ...change });
    expect(await run(command)).toMatchObject({ answer: "granted" });
    await run(checkpointOf(command, command.stream ? said : noUsage));
    await store.setClock(after(60));
    expect((await node.recover(1_000)).settled).toBe(1);
    return command;
  }
  /** The usage that the request's own node forwarded in the end: 500 nanos. */
  const usage = { ...noUsage, inputTokens: 60, cachedInputTokens: 40, outputTokens: 40, reasoningTokens: 3 };
  const settlement = (command: Admit, change: Partial<Settle> = {}) =>
    settleOf(command, 500, { usage: { ...usage, source: "reported" }, outcome: "cancelled", ...change });
  const recordOf = async ({ requestId }: Admit) =>
    (await store.db.query("select r::text from usage_record r where request_id = $1", [bare(requestId, "req_")]))[0];
  const usedBy = async (organization: string) => (await book.windows(organization, unlimited)).session.used;
  const late = (charged: number, uncharged = 0) => ({
    answer: "late" as const,
    entryId: expect.stringMatching(/^req_[0-9a-f]{12}8/),
    charged,
    uncharged,
  });

  test("what was forwarded after the last checkpoint is charged, by an entry of its own; the record stays as it was", async () => {
    const organization = await store.newOrganization();
    const command = await recovered(organization);
    const before = await recordOf(command);
    await store.setClock(after(300));
    expect(await run(settlement(command))).toEqual(late(330));
    expect(await recordOf(command)).toEqual(before!);
    expect(await usedBy(organization)).toBe(500);
    const reading = await book.reading(organization, unlimited);
    expect([reading.running, reading.windows.session.held]).toEqual([0, 0]);
  });

  test("one receipt and one row of the list have the sums, and say that the request was recovered", async () => {
    const organization = await store.newOrganization();
    const command = await recovered(organization);
    const { requestId } = command;
    expect(await book.receipt(organization, requestId)).toMatchObject({
      settledLateAt: null,
      nanos: { charged: 170 },
    });
    await store.setClock(after(300));
    const { entryId } = await run<SettleAnswer & { answer: "late" }>(settlement(command));
    expect(await book.receipt(organization, requestId)).toMatchObject({
      requestId,
      keyId: command.keyId,
      operation: "chat.completions",
      outcome: "failed",
      recovered: true,
      createdAt: noon,
      endedAt: after(60),
      settledLateAt: after(300),
      usage: { ...usage, source: "reported" },
      nanos: { held: 1000, charged: 500, uncharged: 0 },
      windows: { session: { usedBefore: 0, usedAfter: 500 }, month: { usedAfter: 500 } },
    });
    expect(await book.receiptOfAny(entryId)).toBeNull();
    const { items } = await requestList(store.db).listRequests({ organizationId: organization, limit: 10 });
    const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = usage;
    expect(items).toMatchObject([
      { requestId, recovered: true, charged: 500, inputTokens, cachedInputTokens, outputTokens, reasoningTokens },
    ]);
  });

  test("reports count one request with all of its tokens and nanos, for its key, team, model and hour, before a roll-up and after", async () => {
    const organization = await store.newOrganization();
    const keyId = `key_${newHex()}`;
    await setBudget(store.db, organization, keyId, {}, Bun.randomUUIDv7());
    const command = await recovered(organization, { keyId });
    await store.setClock(after(7_200));
    expect(await run(settlement(command))).toEqual(late(330));
    const rowsBy = async (by: (typeof reportGroups)[number]) => {
      const span = { from: after(-43_200), to: after(86_400) };
      const { rows } = await book.report({ ...span, by: [by], organizationId: organization, rows_max: 100 });
      return rows!;
    };
    for (const roll of [async () => {}, () => book.rollUp()]) {
      await roll();
      for (const by of ["organization", "team", "key", "model", "outcome", "hour"] as const)
        expect(await rowsBy(by)).toMatchObject([{ requests: 1, nanos: 500n, ...usage, source: undefined }].map(plain));
      expect(await rowsBy("operation")).toMatchObject([
        { operation: "adjustment", requests: 0, nanos: 330n, outputTokens: 33 },
        { operation: "chat.completions", requests: 1, nanos: 170n, outputTokens: 7 },
      ]);
    }
    await expectChecked(book);
  });
  const plain = ({ source: _, ...rest }: Record<string, unknown>) => rest;

  test("it counts once, however often and from wherever it comes", async () => {
    const organization = await store.newOrganization();
    const [one, other] = [await recovered(organization), await recovered(organization)];
    const second = ledger(name === "postgres" ? await store.another() : store.db, { recovery: "checkpoint" });
    const commands = [settlement(one), settlement(other)];
    const answers = (
      await Promise.all([book.run(commands), second.run([...commands].reverse()), second.run(commands)])
    ).flat();
    expect(answers.map(({ answer }) => answer).toSorted()).toEqual([...Array(4).fill("already"), "late", "late"]);
    expect(await book.run([settlement(one), settlement(one)])).toEqual(Array(2).fill({ answer: "already" }));
    expect((await second.recover(1_000)).settled).toBe(0);
    expect(await usedBy(organization)).toBe(1000);
    await second.close();
  });

  test("it is charged what every limit leaves, beside the holds of others; the rest stands as uncharged", async () => {
    const limits: UsageLimits = { ...unlimited, week: 1_300 };
    const organization = await store.newOrganization();
    const one = await recovered(organization, { limits });
    const other = await recovered(organization, { limits });
    // 340 nanos are used. Another request holds 900 of the 960 nanos that are left.
    const runs = admitOf(organization, { limits, outputTokens: 80 });
    expect(await run(runs)).toMatchObject({ answer: "granted", nanos: 900 });
    expect(await book.run([settlement(one), settlement(other)])).toEqual([late(60, 270), late(0, 330)]);
    expect(await book.receipt(organization, one.requestId)).toMatchObject({
      nanos: { charged: 230, uncharged: 270 },
    });
    expect(await run(settleOf(runs, 900))).toMatchObject({ charged: 900, uncharged: 0 });
    expect((await book.windows(organization, limits)).week).toMatchObject({ used: 1_300, held: 0 });
    expect(await run(settlement(other))).toEqual({ answer: "already" });
  });

  test("it counts in the key and the team of its admission, up to what they may use", async () => {
    const organization = await store.newOrganization();
    const [keyId, team] = [`key_${newHex()}`, Bun.randomUUIDv7()];
    const set = (id: string, of: string | null, month: number) => setBudget(store.db, organization, id, { month }, of);
    await set(team, null, 1_100);
    await set(keyId, team, 5_000);
    const command = await recovered(organization, { keyId });
    await set(keyId, null, 5_000);
    await set(team, null, 400);
    expect(await run(settlement(command))).toEqual(late(230, 100));
    const [key] = await book.budgets(organization, keyId);
    expect(key).toMatchObject({ subject: "key", running: 0, windows: { month: { used: 400, held: 0 } } });
    await expectChecked(book);
  });

  test("it counts in what is counted since its request was recovered, whose earlier use that is", async () => {
    const organization = await store.newOrganization();
    const [keyId, uuid] = [`key_${newHex()}`, bare(organization, "org_")];
    const command = await recovered(organization, { keyId });
    await limitSubject(store.db, organization, keyId, { month: 5_000 });
    await limitModels(store.db, uuid, uuid, command.model, { week: 5_000 });
    await limitModels(store.db, uuid, uuid, "other/*", { week: 5_000 });
    const used = async () =>
      (await book.budgets(organization, keyId)).map(({ models, windows }) => [models, windows.month.used]);
    expect(await used()).toEqual([
      [undefined, 170],
      [command.model, 170],
      ["other/*", 0],
    ]);
    expect(await run(settlement(command))).toEqual(late(330));
    expect(await used()).toEqual([
      [undefined, 500],
      [command.model, 500],
      ["other/*", 0],
    ]);
    await expectChecked(book);
  });

  test("it counts in the windows of its admission, when they are over and sealed too", async () => {
    const organization = await store.newOrganization();
    const command = await recovered(organization);
    await store.setClock(after(40 * 86_400));
    await serve(admitOf(organization), 10);
    await book.audit();
    await book.audit();
    expect(await run(settlement(command))).toEqual(late(330));
    const [session, month] = await store.db.query<{ used: number }>(
      `select used from usage_window where subject_id = $1 and starts_at <= $2 and ends_at > $2 and kind in ('session', 'month')
       order by kind`,
      [bare(organization, "org_"), noon],
    );
    expect([session!.used, month!.used]).toEqual([500, 500]);
    expect((await book.windows(organization, unlimited)).month.used).toBe(10);
    await expectBalanced(book);
  });

  test("extra usage goes on as extra usage", async () => {
    const organization = await store.newOrganization({ extra: { enabled: true, capNanos: 1_200 } });
    const command = await recovered(organization, { limits: { ...unlimited, session: 1 } });
    expect(await run(settlement(command))).toEqual(late(330));
    const { extra, windows } = await book.reading(organization, unlimited);
    expect([extra.used, extra.held, windows.session.used]).toEqual([500, 0, 0]);
    expect((await book.receipt(organization, command.requestId))!.source).toBe("extra");
  });

  test.each(["checkpoint", "hold"] as const)(
    "a recovery by its %s charges nothing where a key asks again",
    async (by) => {
      const organization = await store.newOrganization();
      await recovered(organization, { isRepeatable: true }, ledger(store.db, { recovery: by }));
      expect(await usedBy(organization)).toBe(0);
      await recovered(organization, {}, ledger(store.db, { recovery: by }));
      expect(await usedBy(organization)).toBe(by === "hold" ? 1000 : 170);
    },
  );

  test("nothing is charged late that was not delivered, that its repeat pays, that was charged whole, or that the record has", async () => {
    const organization = await store.newOrganization();
    const holding = ledger(store.db, { recovery: "hold" });
    const collected = await recovered(organization, { stream: false });
    const repeatable = await recovered(organization, { isRepeatable: true }, book, noUsage);
    const held = await recovered(organization, {}, holding);
    const same = await recovered(organization);
    const forgotten = await recovered(organization);
    const givenUp = admitOf(organization);
    const used = await usedBy(organization);
    expect(used).toBe(1000 + 170 + 170);
    expect(await run(settleOf(givenUp, 0, { outcome: "failed" }))).toMatchObject({ answer: "settled", charged: 0 });
    for (const settle of [
      settlement(collected),
      { ...settlement(repeatable), isRepeatable: true as const },
      settlement(held),
      settleOf(held, 1_500, { usage }),
      settleOf(same, 170, { usage: checkpointed }),
      settleOf(forgotten, 0, { usage: noUsage }),
      settlement(givenUp),
    ])
      expect([settle.requestId, await run(settle)]).toEqual([settle.requestId, { answer: "already" }]);
    expect(await usedBy(organization)).toBe(used);
  });
});
