// The ledger's guarantees for limits for models, on every store.
import { describe, expect, test } from "bun:test";
import { matchesModel } from "../../../src/core/store/budget.ts";
import type { Admit, AdmitAnswer, GrowAnswer, UsageLimits } from "../../../src/core/store/ledger.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { admitOf, checkpointOf, growOf, hours, ledgerForTests, noon, settleOf, unlimited } from "./ledger-stores.ts";
import { type House, house, limitModels, type Whose, whose } from "./model-limits.ts";

describe.each(databaseKinds(import.meta.path))("limits for models on %s", (name) => {
  const { store, book, run } = ledgerForTests(name, { clock: noon });
  const limit = ({ ids }: House, one: Whose, pattern: string, limits: Partial<UsageLimits>) =>
    limitModels(store.db, ids.organization, ids[one], pattern, limits);
  const asked = ({ organization, key }: House, model = "acme/large", change: Partial<Admit> = {}): Admit => ({
    ...admitOf(organization, change),
    keyId: key,
    model,
  });
  const standing = async ({ organization, key }: House) =>
    (await book.budgets(organization, key)).map(({ subject, models, running, windows: { session, week, month } }) => ({
      ...{ subject, models, running },
      used: [session.used, week.used, month.used],
      held: [session.held, week.held, month.held],
    }));

  test.each(whose.flatMap((one) => ["acme/large", "acme/*"].map((pattern) => [one, pattern] as const)))(
    "a limit of the %s for %s refuses exactly, and no other model",
    async (one, pattern) => {
      const at = await house(store);
      await limit(at, one, pattern, { session: 5_000 });
      const answers = (await book.run(Array.from({ length: 8 }, () => asked(at)))) as AdmitAnswer[];
      expect(answers.map(({ answer }) => answer)).toEqual([...Array(5).fill("granted"), ...Array(3).fill("reserved")]);
      expect(answers[5]).toMatchObject({
        kinds: [],
        subjects: [{ subject: one, models: pattern, windows: { session: { limit: 5_000, held: 5_000 } }, running: 5 }],
      });
      const others = (await book.run([asked(at, "other/large"), asked(at, "acme")])) as AdmitAnswer[];
      expect(others).toMatchObject([{ answer: "granted" }, { answer: "granted" }]);
      expect(others[0]).not.toHaveProperty("subjects");
    },
  );

  test("all patterns that match count, of all four kinds of subjects, at once", async () => {
    const at = await house(store);
    for (const one of whose)
      for (const pattern of ["acme/large", "acme/*"]) await limit(at, one, pattern, { week: 9_000 });
    const command = asked(at);
    const answer = await run<AdmitAnswer & { answer: "granted" }>(command);
    expect(answer.subjects).toHaveLength(8);
    await run(asked(at, "acme/small"));
    await run(settleOf(command, 700));
    const rows = await standing(at);
    for (const row of rows) {
      const is =
        row.models === "acme/large" ? { running: 0, held: [0, 0, 0] } : { running: 1, held: [1_000, 1_000, 1_000] };
      expect(row).toMatchObject({ ...is, used: [700, 700, 700] });
    }
    expect(rows).toHaveLength(8);
  });

  test("a model counts by its id and by each alias, and once in a pattern that matches several of them", async () => {
    const at = await house(store);
    await limit(at, "team", "old/writer", { session: 2_000 });
    await limit(at, "organization", "acme/*", { session: 9_000 });
    const renamed = () => asked(at, "acme/large", { aliases: ["old/writer", 'a "quoted", {name}', "acme/best"] });
    const commands = [renamed(), renamed(), renamed()];
    expect(await book.run(commands)).toMatchObject([
      { answer: "granted" },
      { answer: "granted" },
      { answer: "reserved", subjects: [{ subject: "team", models: "old/writer", running: 2 }, {}] },
    ]);
    expect(await run(asked(at, "acme/large"))).toMatchObject({ answer: "granted" });
    await run(settleOf(commands[0]!, 700));
    expect(await standing(at)).toMatchObject([
      { subject: "team", models: "old/writer", running: 1, used: [700, 700, 700], held: [1_000, 1_000, 1_000] },
      { subject: "organization", models: "acme/*", running: 2, used: [700, 700, 700], held: [2_000, 2_000, 2_000] },
    ]);
    expect(await book.check(true)).toEqual([]);
  });

  test("the pattern that has least left decides, and what it refuses no extra usage takes", async () => {
    const at = await house(store, { enabled: true, capNanos: 50_000 });
    await limit(at, "organization", "acme/*", { session: 2_000 });
    const limits = { ...unlimited, session: 1_000 };
    const commands = Array.from({ length: 3 }, () => asked(at, "acme/large", { limits }));
    expect(await book.run(commands)).toMatchObject([
      { answer: "granted", source: "plan" },
      { answer: "granted", source: "extra" },
      { answer: "reserved", subjects: [{ subject: "organization", models: "acme/*" }] },
    ]);
    for (const command of commands.slice(0, 2)) await run(settleOf(command, 1_000));
    expect(await run(asked(at, "acme/large", { limits }))).toMatchObject({ answer: "exhausted" });
    expect(await run(asked(at, "other/large", { limits }))).toMatchObject({ answer: "granted", source: "extra" });
  });

  test("requests at a time are counted for a pattern alone", async () => {
    const at = await house(store);
    await limit(at, "team", "acme/*", { concurrentRequests: 2 });
    const answers = await book.run(
      ["acme/large", "acme/small", "acme/large", "plain"].map((model) => asked(at, model)),
    );
    expect(answers).toMatchObject([
      { answer: "granted" },
      { answer: "granted" },
      { answer: "concurrency", subjects: [{ subject: "team", models: "acme/*", running: 2, concurrentRequests: 2 }] },
      { answer: "granted" },
    ]);
  });

  test.each(whose)(
    "a limit of the %s that is set later counts what was used and what runs, in every window",
    async (one) => {
      const at = await house(store);
      await store.setClock(hours(-6));
      const [early, long] = [asked(at), asked(at, "acme/large", { lease_ms: 1e9 })];
      await book.run([early, long, asked(at, "plain")]);
      await run(settleOf(early, 1_000));
      await store.setClock(noon);
      const [ended, running, other] = [asked(at), asked(at, "acme/small"), asked(at, "plain")];
      await book.run([ended, running, other]);
      await run(settleOf(ended, 600));
      await run(settleOf(other, 800));
      await limit(at, one, "acme/*", { session: 2_500, week: 4_500 });
      const row = { subject: one, models: "acme/*" };
      expect(await standing(at)).toEqual([
        { ...row, running: 2, used: [600, 1_600, 1_600], held: [1_000, 2_000, 2_000] },
      ]);
      expect(await run(asked(at))).toMatchObject({ answer: "reserved" });
      // This request was admitted in a session that has ended.
      await run(settleOf(long, 900));
      expect(await standing(at)).toEqual([
        { ...row, running: 1, used: [600, 2_500, 2_500], held: [1_000, 1_000, 1_000] },
      ]);
      expect(await book.check(true)).toEqual([]);
    },
  );

  test("what runs is bound at its next growth, charged within the limit, and recovered within it", async () => {
    const at = await house(store);
    const [command, lapsing] = [asked(at), asked(at, "acme/large", { lease_ms: 1_000 })];
    await book.run([command, lapsing]);
    await limit(at, "person", "acme/large", { session: 2_200 });
    expect(await run<GrowAnswer>(growOf(command, 1_500, 1_300))).toMatchObject({
      answer: "full",
      limits: [{ limitedBy: "person", models: "acme/large", window: "session" }],
    });
    expect(await run<GrowAnswer>(growOf(command, 1_500, 1_100))).toEqual({ answer: "granted", nanos: 1_200 });
    await run(checkpointOf(lapsing, { outputTokens: 90 }, { lease_ms: 1_000 }));
    await limit(at, "person", "acme/large", { session: 600 });
    await store.setClock(new Date(noon.getTime() + 10_000));
    expect((await book.recover(10)).settled).toBeGreaterThanOrEqual(1);
    expect(await book.receipt(at.organization, lapsing.requestId)).toMatchObject({
      nanos: { charged: 600, uncharged: 300 },
    });
    await limit(at, "person", "acme/large", { session: 1_500 });
    // The limit has 900 left.
    expect(await run(settleOf(command, 1_300))).toEqual({ answer: "settled", charged: 900, uncharged: 400 });
  });

  test("the ID of a pattern is that of no person, and each subject and pattern has its own", async () => {
    const { ids } = await house(store);
    const [row] = await store.db.query<{ all: string[] }>(
      `select array[usage_member($1, $2), usage_models_subject($1, $2::text), usage_models_subject($2, $1::text),
         usage_models_subject($1, 'a'), usage_models_subject($1, 'a/*')] as all`,
      [ids.organization, ids.person],
    );
    expect(new Set(row!.all).size).toBe(5);
  });

  test("the database matches models as nodes do", async () => {
    const patterns = ["a", "a/*", "a/b", "a/b/*", "a/b/c", "/*", "*", "b/*", "a/b/", "", "aa/*", "a.b", "a_b"];
    const models = ["a", "a/b", "a/b/c", "/a", "/", "a/", "", "aa/b", "b", "a.b", "a//b"];
    for (const model of models) {
      const [row] = await store.db.query<{ all: string[] }>("select usage_patterns($1) as all", [model]);
      expect(patterns.filter((one) => row!.all.includes(one))).toEqual(
        patterns.filter((one) => matchesModel(one, model)),
      );
    }
  });
});
