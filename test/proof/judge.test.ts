// The crash test's judge says what is wrong when charges do not match what the engine wrote, and nothing when they do.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Seen } from "../../proof/client.ts";
import type { Attempt } from "../../proof/engine.ts";
import { type Account, type Injury, judge, type Truth, type Verdict } from "../../proof/judge.ts";
import type { Script } from "../../proof/script.ts";

const script: Script = { id: "one", tokens: 100, gap_ms: 10, report: "true", dies_after: null, deaths: 0 };

function seenOf(over: Partial<Seen> = {}): Seen {
  const times = { began_ms: 1_000, ended_ms: 2_000 };
  const end = { status: 200, tokens: 100, isWhole: true, hasLeft: false };
  return { script, key: "key-1", node: "node-1", stream: true, ...times, ...end, ...over };
}

function accountOf(output_tokens: number, seen: readonly Seen[], over: Partial<Account> = {}): Account {
  return { key: "key-1", output_tokens_max: null, seen, usage: { input_tokens: 10, output_tokens }, ...over };
}

function truthOf(written: number, over: Partial<Truth> = {}): Truth {
  const attempt: Attempt = { written, prompt_tokens: 10, reported: written === script.tokens };
  return {
    book: new Map([["one", [attempt]]]),
    injuries: [],
    uncounted_ms_max: 0,
    cut_off_ms_max: 0,
    estimate_share_max: 0.5,
    ...over,
  };
}

const verdicts = (account: Account, truth: Truth): Verdict[] => judge(account, truth).map(({ verdict }) => verdict);

describe("what came whole and was reported", () => {
  test("is charged to the token", () => {
    expect(verdicts(accountOf(100, [seenOf()]), truthOf(100))).toEqual([]);
    expect(verdicts(accountOf(99, [seenOf()]), truthOf(100))).toEqual(["lost"]);
    expect(verdicts(accountOf(101, [seenOf()]), truthOf(100))).toEqual(["unexplained"]);
    expect(verdicts(accountOf(200, [seenOf()]), truthOf(100))).toEqual(["doubled"]);
  });

  test("is charged as it was delivered where the report is impossible", () => {
    const seen = seenOf({ script: { ...script, report: "impossible" } });
    expect(verdicts(accountOf(100, [seen]), truthOf(100))).toEqual([]);
    expect(verdicts(accountOf(100_000, [seen]), truthOf(100))).toEqual(["unexplained"]);
  });
});

describe("what broke off", () => {
  const left = seenOf({ tokens: 40, isWhole: false, hasLeft: true });

  test("is charged for what was delivered, as well as a gateway can count", () => {
    expect(verdicts(accountOf(40, [left]), truthOf(45))).toEqual([]);
    expect(verdicts(accountOf(0, [left]), truthOf(45))).toEqual(["lost"]);
    expect(verdicts(accountOf(100, [left]), truthOf(45))).toEqual(["unexplained"]);
  });

  test("may lack what the documents say where its node died, and no more", () => {
    const injuries = [
      { fault: "kill node-1", place: "node" as const, node: "node-1", from_ms: 1_500, until_ms: 1_600 },
    ];
    const promised = truthOf(45, { injuries, uncounted_ms_max: 200 });
    expect(verdicts(accountOf(0, [left]), promised)).toEqual([]);
    expect(verdicts(accountOf(0, [{ ...left, node: "node-2" }]), promised)).toEqual(["lost"]);
    expect(verdicts(accountOf(0, [left]), { ...promised, uncounted_ms_max: 50 })).toEqual(["lost"]);
  });

  test("may lack more where its node had no store and died before it was back, as far as the documents say", () => {
    const away: Injury = { fault: "kill postgres", place: "store", node: null, from_ms: 1_200, until_ms: 1_400 };
    const killed: Injury = { fault: "kill node-1", place: "node", node: "node-1", from_ms: 1_500, until_ms: 1_600 };
    const both = truthOf(45, { injuries: [away, killed], uncounted_ms_max: 50, cut_off_ms_max: 200 });
    expect(verdicts(accountOf(0, [left]), both)).toEqual([]);
    expect(verdicts(accountOf(0, [left]), { ...both, cut_off_ms_max: 50 })).toEqual(["lost"]);
    expect(verdicts(accountOf(0, [left]), { ...both, injuries: [away] })).toEqual(["lost"]);
    expect(verdicts(accountOf(0, [left]), { ...both, injuries: [killed] })).toEqual(["lost"]);
    const short = { ...away, until_ms: 1_210 };
    expect(verdicts(accountOf(0, [left]), { ...both, injuries: [short, killed] })).toEqual(["lost"]);
  });

  test("is free if nothing of it was delivered and its client had stayed", () => {
    const failed = seenOf({ status: 502, tokens: 0, isWhole: false });
    expect(verdicts(accountOf(0, [failed], { usage: { input_tokens: 0, output_tokens: 0 } }), truthOf(0))).toEqual([]);
    expect(verdicts(accountOf(0, [failed]), truthOf(0))).toEqual(["charged without delivery"]);
  });
});

test("a limit is passed by what an honest book says, or by the book", () => {
  const limited = { output_tokens_max: 90 };
  expect(verdicts(accountOf(100, [seenOf()], limited), truthOf(100))).toEqual(["overspent"]);
  expect(verdicts(accountOf(90, [seenOf()], limited), truthOf(100))).toEqual(["lost", "overspent"]);
});

test("a limit may be passed by what a node delivered that was cut off for as long as the documents say, and by no more", () => {
  const limited = { output_tokens_max: 90 };
  const times = { from_ms: 1_100, until_ms: 1_300 };
  const injury = { fault: "cut node-1 and Postgres", place: "store" as const, node: "node-1", ...times };
  const cut = (over = {}) => truthOf(100, { injuries: [{ ...injury, ...over }], cut_off_ms_max: 100 });
  const spent = (seen: Seen, truth: Truth) => verdicts(accountOf(100, [seen], limited), truth);
  expect(spent(seenOf(), cut())).toEqual([]);
  expect(spent(seenOf(), { ...cut(), cut_off_ms_max: 80 })).toEqual(["overspent"]);
  expect(spent(seenOf(), cut({ until_ms: 1_150 }))).toEqual(["overspent"]);
  expect(spent(seenOf(), cut({ node: "node-2" }))).toEqual(["overspent"]);
  expect(spent(seenOf(), cut({ place: "outside" }))).toEqual(["overspent"]);
  expect(spent(seenOf({ stream: false }), cut())).toEqual(["overspent"]);
});

test("any book that adds up what was delivered whole is right, and none that is off by a token", () => {
  const requests = fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(requests, fc.integer({ min: -3, max: 3 }), (lengths, off) => {
      const scripts = lengths.map((tokens, index) => ({ ...script, id: `${index}`, tokens }));
      const seen = scripts.map((one) => seenOf({ script: one, tokens: one.tokens }));
      const book = new Map(scripts.map((one) => [one.id, [{ written: one.tokens, prompt_tokens: 1, reported: true }]]));
      const sum = lengths.reduce((total, tokens) => total + tokens, 0);
      const found = judge(accountOf(sum + off, seen), {
        book,
        injuries: [],
        uncounted_ms_max: 0,
        cut_off_ms_max: 0,
        estimate_share_max: 0,
      });
      expect(found.length).toBe(off === 0 ? 0 : 1);
    }),
  );
});
