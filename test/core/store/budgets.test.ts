// The ledger's guarantees for limits of keys and teams, on every store.
import { describe, expect, test } from "bun:test";
import type { Budget } from "../../../src/core/store/budget.ts";
import { bare } from "../../../src/core/store/ids.ts";
import type { Admit, AdmitAnswer, GrowAnswer } from "../../../src/core/store/ledger.ts";
import { databaseKinds } from "../../harness/depth.ts";
import {
  admitOf,
  checkpointOf,
  growOf,
  hours,
  ledgerForTests,
  newHex,
  noon,
  settleOf,
  unlimited,
} from "./ledger-stores.ts";
import { limitSubject } from "./subject-limits.ts";

describe.each(databaseKinds(import.meta.path))("budgets on %s", (name) => {
  const { store, book, run, admit } = ledgerForTests(name, { clock: noon });
  const newKey = () => `key_${newHex()}`;
  const newTeam = () => Bun.randomUUIDv7();
  /** Sets a subject's limits. Returns whether earlier use had to be summed. */
  const limit = (organization: string, id: string, budget: Partial<Budget>, team: string | null = null) =>
    limitSubject(store.db, organization, id, budget, team);
  /** A request that needs a thousand nanos: ten output tokens of ten nanos each, and nine hundred for its input. */
  const asked = (organization: string, keyId: string, change: Partial<Admit> = {}) => ({
    ...admitOf(organization, change),
    keyId,
  });

  test("a key's five-hour limit is refused exactly, and the rest of its organization goes on", async () => {
    const organization = await store.newOrganization();
    const [key, other] = [newKey(), newKey()];
    await limit(organization, key, { session: 5_000 });
    const commands = Array.from({ length: 8 }, () => asked(organization, key));
    const answers = (await book.run(commands)) as AdmitAnswer[];
    expect(answers.map(({ answer }) => answer)).toEqual([...Array(5).fill("granted"), ...Array(3).fill("reserved")]);
    expect(answers[5]).toMatchObject({
      kinds: [],
      subjects: [{ subject: "key", windows: { session: { limit: 5_000, used: 0, held: 5_000 } }, running: 5 }],
    });
    const neighbour = await admit(asked(organization, other));
    expect(neighbour).toMatchObject({ answer: "granted", windows: { session: { held: 5_000 } } });
    expect(neighbour).not.toHaveProperty("subjects");

    for (const command of commands.slice(0, 5)) await run(settleOf(command, 1_000));
    expect(await admit(asked(organization, key))).toMatchObject({ answer: "exhausted", kinds: [] });
    expect(await book.budgets(organization, key)).toMatchObject([
      {
        subject: "key",
        running: 0,
        windows: { session: { used: 5_000, held: 0, resetAt: hours(5) }, week: { used: 5_000 } },
      },
    ]);
    await store.setClock(hours(5));
    expect(await book.budgets(organization, key)).toMatchObject([
      { windows: { session: { used: 0 }, week: { used: 5_000 } } },
    ]);
    expect(await admit(asked(organization, key))).toMatchObject({ answer: "granted" });
  });

  test("a team's limit counts all of its keys, and a key in it has its own beside", async () => {
    const organization = await store.newOrganization();
    const [first, second, team] = [newKey(), newKey(), newTeam()];
    await limit(organization, team, { week: 5_000, concurrentRequests: 4 });
    await limit(organization, first, { month: 2_000 }, team);
    await limit(organization, second, {}, team);
    expect(await admit(asked(organization, first))).toMatchObject({
      answer: "granted",
      subjects: [{ subject: "key" }, { subject: "team", windows: { week: { limit: 5_000 } }, concurrentRequests: 4 }],
    });
    const more = [first, first, second, second, second].map((key) => asked(organization, key));
    expect((await book.run(more)).map(({ answer }) => answer as string)).toEqual([
      ...["granted", "reserved", "granted", "granted", "concurrency"],
    ]);
    await run(settleOf(more[0]!, 500));
    expect(await admit(asked(organization, second))).toMatchObject({ answer: "granted" });
    // Of the team's 5,000, 500 are used and 4,000 held.
    await run(settleOf(more[2]!, 1_000));
    expect(await admit(asked(organization, second))).toMatchObject({ answer: "reserved" });
  });

  test("extra usage counts in the key's limit, and relieves the organization alone", async () => {
    const organization = await store.newOrganization({ extra: { enabled: true, capNanos: 50_000 } });
    const key = newKey();
    await limit(organization, key, { session: 3_000 });
    const limits = { ...unlimited, session: 1_000 };
    const commands = Array.from({ length: 4 }, () => asked(organization, key, { limits }));
    const answers = await book.run(commands);
    expect(answers).toMatchObject([
      { answer: "granted", source: "plan" },
      { answer: "granted", source: "extra" },
      { answer: "granted", source: "extra" },
      { answer: "reserved" },
    ]);
    await run(settleOf(commands[1]!, 1_000));
    expect(await book.budgets(organization, key)).toMatchObject([
      { windows: { session: { used: 1_000, held: 2_000 } } },
    ]);
    // The key's limit leaves nothing, whether its amount is used or only held.
    expect(await admit(asked(organization, key, { limits }))).toMatchObject({ answer: "reserved" });
    await run(settleOf(commands[0]!, 0));
    expect(await admit(asked(organization, key, { limits }))).toMatchObject({ answer: "granted" });
    await run(settleOf(commands[2]!, 1_000));
    expect(await admit(asked(organization, key, { limits }))).toMatchObject({ answer: "reserved" });
  });

  test("a hold shrinks to the key's room, grows within it, and is charged no more than it", async () => {
    const organization = await store.newOrganization();
    const key = newKey();
    await limit(organization, key, { session: 1_500 });
    const command = asked(organization, key, { outputTokens: 200, outputTokens_min: 10 });
    expect(await admit(command)).toMatchObject({ answer: "granted", nanos: 1_500, outputTokens: 140 });
    expect(await run<GrowAnswer>(growOf(command, 2_000, 1_600))).toMatchObject({
      answer: "full",
      limits: [{ limitedBy: "key", window: "session" }],
    });
    await limit(organization, key, { session: 1_800 });
    expect(await run<GrowAnswer>(growOf(command, 2_000, 1_600))).toEqual({ answer: "granted", nanos: 1_800 });
    // The limit is lowered below the held amount: the growth gives back what the request does not need, and use beyond
    // the limit is not charged.
    await limit(organization, key, { session: 1_200 });
    expect(await run<GrowAnswer>(growOf(command, 1_800, 500, { number: 2 }))).toEqual({
      answer: "granted",
      nanos: 1_200,
    });
    expect(await run(settleOf(command, 1_700))).toEqual({ answer: "settled", charged: 1_200, uncharged: 500 });
    expect(await admit(asked(organization, key))).toMatchObject({ answer: "exhausted" });
  });

  test("a key that changes its team keeps its running requests where they were admitted", async () => {
    const organization = await store.newOrganization();
    const [key, one, two] = [newKey(), newTeam(), newTeam()];
    await limit(organization, one, { month: 10_000 });
    await limit(organization, two, { month: 10_000 });
    await limit(organization, key, {}, one);
    const command = asked(organization, key);
    await admit(command);
    await limit(organization, key, {}, two);
    expect(await book.budgets(organization, key)).toMatchObject([
      { subject: "team", running: 0, windows: { month: { held: 0 } } },
    ]);
    await admit(asked(organization, key));
    await run(settleOf(command, 700));
    await limit(organization, key, {}, one);
    expect(await book.budgets(organization, key)).toMatchObject([
      { running: 0, windows: { month: { used: 700, held: 0 } } },
    ]);
    const [record] = await store.db.query<{ team_id: string; subjects: string[] }>(
      "select team_id, subjects from usage_record where request_id = $1",
      [bare(command.requestId, "req_")],
    );
    expect(record).toEqual({ team_id: one, subjects: [one] });
  });

  test("a limit that is set later counts what was used and what runs, in every window", async () => {
    const organization = await store.newOrganization();
    const [key, team] = [newKey(), newTeam()];
    await limit(organization, key, {}, team);
    await store.setClock(hours(-6));
    const [early, long] = [asked(organization, key), asked(organization, key, { lease_ms: 1e9 })];
    await book.run([early, long]);
    await run(settleOf(early, 1_000));
    await store.setClock(noon);
    const [ended, running] = [asked(organization, key), asked(organization, key)];
    await book.run([ended, running]);
    await run(settleOf(ended, 600));
    for (const [id, mine] of [
      [key, team],
      [team, null],
    ] as const) {
      await limit(organization, id, { session: 2_500, week: 4_500 }, mine);
    }
    const seen = { running: 2, windows: { session: { used: 600, held: 1_000 }, week: { used: 1_600, held: 2_000 } } };
    expect(await book.budgets(organization, key)).toMatchObject([
      { subject: "key", ...seen },
      { subject: "team", ...seen },
    ]);
    expect(await admit(asked(organization, key))).toMatchObject({ answer: "reserved" });
    // This request was admitted in a session that has ended.
    await run(settleOf(long, 900));
    expect(await book.budgets(organization, key)).toMatchObject([
      { windows: { session: { used: 600 }, week: { used: 2_500, held: 1_000 } } },
      { subject: "team" },
    ]);
    expect(await book.check(true)).toEqual([]);
  });

  test("earlier use is summed with the first limit, and with no later change", async () => {
    const [organization, key] = [await store.newOrganization(), newKey()];
    expect(await limit(organization, key, {}, newTeam())).toBe(false);
    expect(await limit(organization, key, { week: 5_000 })).toBe(true);
    for (const budget of [{ week: 6_000 }, {}, { session: 900 }])
      expect(await limit(organization, key, budget)).toBe(false);
  });

  test.each(["before", "after"])(
    "a key's first limit counts in the key alone, in a team that is limited already; its ID is %s the team's",
    async (order) => {
      const organization = await store.newOrganization();
      const [first, second] = [Bun.randomUUIDv7(), Bun.randomUUIDv7()];
      const team = order === "before" ? second : first;
      const key = `key_${(order === "before" ? first : second).replaceAll("-", "")}`;
      await limit(organization, key, {}, team);
      const [earlier, running] = [asked(organization, key), asked(organization, key)];
      await book.run([earlier, running]);
      await run(settleOf(earlier, 600));
      await limit(organization, team, { week: 10_000 });
      await limit(organization, key, { week: 5_000 }, team);
      const seen = { running: 1, windows: { week: { used: 600, held: 1_000 } } };
      expect(await book.budgets(organization, key)).toMatchObject([
        { subject: "key", ...seen },
        { subject: "team", ...seen },
      ]);
      await run(settleOf(running, 700));
      const settled = { running: 0, windows: { week: { used: 1_300, held: 0 } } };
      expect(await book.budgets(organization, key)).toMatchObject([settled, settled]);
      expect(await book.check(true)).toEqual([]);
    },
  );

  test("what a node left behind is settled within the key's limit", async () => {
    const organization = await store.newOrganization();
    const key = newKey();
    await limit(organization, key, { session: 5_000 });
    const command = asked(organization, key, { lease_ms: 1_000 });
    await admit(command);
    await run(checkpointOf(command, { outputTokens: 90 }, { lease_ms: 1_000 }));
    await limit(organization, key, { session: 300 });
    await store.setClock(new Date(noon.getTime() + 10_000));
    expect((await book.recover(10)).settled).toBeGreaterThanOrEqual(1);
    expect(await book.receipt(organization, command.requestId)).toMatchObject({
      recovered: true,
      nanos: { charged: 300, uncharged: 600 },
    });
    expect(await book.budgets(organization, key)).toMatchObject([
      { running: 0, windows: { session: { used: 300, held: 0 } } },
    ]);
  });

  test("a key's week ends with its organization's, and what is settled late goes where it was admitted", async () => {
    const organization = await store.newOrganization();
    const key = newKey();
    await limit(organization, key, { week: 1_500 });
    // The week ends on 14 March at ten.
    await store.setClock(new Date("2026-03-14T09:59:00Z"));
    const command = asked(organization, key, { lease_ms: 1e9 });
    await admit(command);
    expect(await admit(asked(organization, key))).toMatchObject({ answer: "reserved" });
    await store.setClock(new Date("2026-03-14T10:00:00Z"));
    const next = asked(organization, key);
    expect(await admit(next)).toMatchObject({
      answer: "granted",
      subjects: [{ windows: { week: { held: 0, startsAt: new Date("2026-03-14T10:00:00Z") } } }],
    });
    expect(await run(settleOf(command, 1_400))).toMatchObject({ charged: 1_400 });
    expect(await run(settleOf(next, 200))).toMatchObject({ charged: 200 });
    expect(await book.budgets(organization, key)).toMatchObject([
      { windows: { week: { used: 200 }, month: { used: 1_600 } } },
    ]);
    expect(await book.check()).toEqual([]);
  });
});
