// Parsing the database's rows for a batch of ledger commands: each result belongs to its command, and amounts are
// exact.

import { expect, test } from "bun:test";
import type { AdmitAnswer, Command, UsageLimits } from "../../../src/core/store/ledger.ts";
import { decodeAnswers } from "../../../src/stores/postgres/ledger-answers.ts";
import { admitOf, growOf, settleOf } from "../../core/store/ledger-stores.ts";

const organization = "org_01890000000070008000000000000001";
const limits: UsageLimits = { session: 1000, week: 5000, month: 9000, concurrentRequests: 3 };
const admit = admitOf(organization, { limits });
const settle = settleOf(admitOf(organization), 70);
const grow = growOf(admitOf(organization), 20, 10);

const at_ms = Date.UTC(2026, 0, 31, 10);
const hour_ms = 3_600_000;
const starts = [at_ms, at_ms - hour_ms, at_ms - 2 * hour_ms];
const ends = [at_ms + 5 * hour_ms, at_ms + 167 * hour_ms, at_ms + 700 * hour_ms];
const seen = (used: number[], held: number[]) => [[[...starts, ...ends], used, true, 400], held];
const answered = (commands: Command[], ...rows: unknown[]) =>
  decodeAnswers(commands, JSON.stringify([at_ms, 1_250, [], ...rows])).answers;

test("an answer stands in its command's place, in whatever order they come", () => {
  const answers = answered([admit, settle, grow], [2, "granted", 15], [1, "settled", 60], [0, "over"]);
  expect(answers).toEqual([
    { answer: "over" },
    { answer: "settled", charged: 60, uncharged: 10 },
    { answer: "granted", nanos: 15 },
  ]);
});

test("an admission has its windows, and a limited key and team beside them", () => {
  const ofAll = [0, [600, 5000, Number.MAX_SAFE_INTEGER, null], [1, 2, 3]];
  const key = [2, [4, 5, 6], 7, ...ofAll];
  const row = [0, "granted", ...seen([10, 20, 30, 40], [1, 2, 3, 4]), [key], 190, 9, "plan"];
  const next = [1, "granted", ...seen([10, 20, 30, 40], [1, 2, 3, 4]), [[2, [40, 50, 60], 8]], 190, 9, "plan"];
  const [answer, second] = answered([admit, admitOf(organization, { limits })], row, next) as AdmitAnswer[];
  if (answer?.answer !== "granted") throw new Error("it was not granted");
  expect(answer).toMatchObject({ nanos: 190, outputTokens: 9, source: "plan", at: new Date(at_ms) });
  expect(answer.windows.week).toEqual({
    ...{ kind: "week", limit: 5000, used: 20, held: 2 },
    ...{ startsAt: new Date(starts[1]!), resetAt: new Date(ends[1]!) },
  });
  const [subject] = answer.subjects!;
  expect(subject).toMatchObject({ subject: "key", concurrentRequests: null, running: 7 });
  expect(subject!.windows.session).toMatchObject({ limit: 600, used: 1, held: 4, resetAt: new Date(ends[0]!) });
  expect(subject!.windows.month.limit).toBeNull();
  // The row of the next admission with the same key has only its own `running` and `held`; all else is taken from the
  // first.
  expect(second).toMatchObject({
    subjects: [{ subject: "key", running: 8, windows: { session: { limit: 600, used: 1, held: 40 } } }],
  });
});

test("a refusal says which windows are full, the one that resets last first, and what extra usage has", () => {
  const [answer] = answered([admit], [0, "exhausted", ...seen([500, 4500, 9000, 40], [0, 0, 0, 4]), null]);
  expect(answer).toMatchObject({
    answer: "exhausted",
    kinds: ["month", "week", "session"],
    extra: { enabled: true, capNanos: 400, used: 40, held: 4 },
  });
});

test("a number that JSON would round is refused, and so is a batch with a command left out", () => {
  const rounded = `[${at_ms},0,[],[0,"settled",9007199254740993]]`;
  expect(() => decodeAnswers([settle], rounded)).toThrow("not exact");
  const used = seen([2 ** 53, 0, 0, 0], [0, 0, 0, 0]);
  expect(() => answered([admit], [0, "granted", ...used, null, 190, 9, "plan"])).toThrow("not exact");
  expect(() => answered([settle, grow], [0, "settled", 70])).toThrow("left command 1 of a batch without an answer");
});
