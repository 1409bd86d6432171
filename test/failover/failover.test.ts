/**
 * The sixteen faults of FailoverBench (github.com/failoverbench/failoverbench, scenarios/catalogue.yaml), each with
 * the outcome that FailoverBench expects, for clients of each protocol and in three modes. The first engine fails, and a
 * healthy spare is behind it.
 * - streamed: the client gets a stream.
 * - whole: the engine is asked without streaming.
 * - collected: the engine streams, and the client gets one JSON answer.
 * Engines speak Chat Completions; some faults are tested with engines that speak Messages or Responses, too.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { RequestReceipt } from "../../src/features/receipts/receipt-shape.ts";
import { linesThen } from "../harness/log-lines.ts";
import { endedReceipt } from "../harness/receipts.ts";
import { asks, type Caller, protocols, type Seen } from "./callers.ts";
import { type Case, engineProtocols, type Protocol, type Rig, startRig } from "./rig.ts";
import { canonical } from "./wall.ts";

interface Fault {
  name: string;
  title: string;
  /** The expected outcome with streaming: `pass` for the whole response, else the code of a clean error. */
  streamed: "pass" | string;
  /**
   * The expected outcome without streaming. It may differ, because the client gets nothing until the response is
   * complete.
   */
  whole: "pass" | string;
  /** The number of requests that the spare gets if the client streams. */
  spares: number;
  timeouts?: string;
  /** The context window of the first engine, if it is smaller than the model's. */
  contextWindow?: number;
}

const quick = "{ first_part_spare_ms: 300 }";
const pass = "pass";

const faults: Fault[] = [
  { name: "ok", title: "no fault", streamed: pass, whole: pass, spares: 0 },
  { name: "s01", title: "429 with retry-after", streamed: pass, whole: pass, spares: 1 },
  { name: "s02", title: "429 without, again and again", streamed: pass, whole: pass, spares: 1 },
  { name: "s03", title: "500 once", streamed: pass, whole: pass, spares: 1 },
  { name: "s04", title: "503", streamed: pass, whole: pass, spares: 1 },
  { name: "s05", title: "a reset before any byte", streamed: pass, whole: pass, spares: 1 },
  { name: "s06", title: "no answer at all", streamed: pass, whole: pass, spares: 1, timeouts: quick },
  { name: "s07", title: "a late first token", streamed: pass, whole: pass, spares: 1, timeouts: quick },
  { name: "s08", title: "a stream that is cut", streamed: "upstream_unavailable", whole: pass, spares: 0 },
  {
    ...{ name: "s09", title: "a stream that stalls", streamed: "upstream_timeout", whole: pass, spares: 0 },
    timeouts: "{ first_part_spare_ms: 1000, idle_ms: 1000 }",
  },
  { name: "s10", title: "a malformed chunk", streamed: "upstream_unavailable", whole: pass, spares: 0 },
  { name: "s11", title: "no [DONE]", streamed: pass, whole: pass, spares: 0 },
  { name: "s12", title: "too long, and a larger one", streamed: pass, whole: pass, spares: 1, contextWindow: 4096 },
  { name: "s13", title: "a content filter", streamed: "invalid_value", whole: "invalid_value", spares: 0 },
  {
    name: "s14",
    title: "a cut, and a spare without prefill",
    streamed: "upstream_unavailable",
    whole: pass,
    spares: 0,
  },
  { name: "s16", title: "503, and who is booked", streamed: pass, whole: pass, spares: 1 },
  { name: "unknown", title: "404 of one route", streamed: pass, whole: pass, spares: 1 },
  { name: "forbidden", title: "401 of one route", streamed: pass, whole: pass, spares: 1 },
  { name: "html", title: "a page in place of an answer", streamed: pass, whole: pass, spares: 1 },
  { name: "garbage", title: "another protocol than HTTP", streamed: pass, whole: pass, spares: 1 },
  { name: "empty", title: "an empty answer", streamed: pass, whole: pass, spares: 1 },
];

/** An output limit above `unstreamed_tokens_max`, so the service asks the engine for a stream. */
const beyond = { cap: 1_000 };
const modes = ["streamed", "whole", "collected"] as const;
/** The names of the faults that are also tested with engines of every other protocol. */
const spoken = new Set("ok s01 s02 s03 s04 s06 s08 s10 s13 forbidden html empty".split(" "));
const [chat, ...otherProtocols] = engineProtocols;
const all = faults.flatMap((fault) => {
  const one = (caller: Caller, mode: (typeof modes)[number], protocol: Protocol) => ({
    ...{ ...fault, caller, mode, protocol },
    key: [fault.name, caller, mode, ...(protocol === chat ? [] : [protocol])].join("-"),
  });
  const others = spoken.has(fault.name) ? otherProtocols : [];
  return [
    ...protocols.flatMap((caller) => modes.map((mode) => one(caller, mode, chat))),
    ...others.map((protocol) => one("chat", "streamed", protocol)),
  ];
});

function routed({ key, protocol, contextWindow, timeouts }: (typeof all)[number]): Case {
  return {
    id: `acme/${key}`,
    routes: [
      { wall: 0, model: key, protocol, ...(contextWindow ? { contextWindow } : {}) },
      { wall: 1, model: `ok-${key}`, protocol, priority: 1 },
    ],
    ...(timeouts ? { timeouts } : {}),
  };
}

interface Outcome {
  seen: Seen;
  receipt: RequestReceipt;
}

let rig: Rig;
const outcomes = new Map<string, Outcome>();

beforeAll(async () => {
  rig = await startRig(all.map(routed));
  const seen = new Map<string, Seen>();
  const asked = async ({ key, caller, mode }: (typeof all)[number]) => {
    const cap = mode === "collected" ? beyond : {};
    seen.set(key, await asks(rig.sluice, caller, `acme/${key}`, mode === "streamed", cap));
  };
  // Streams that break in the middle are requested a few at a time: on a busy machine, the service would read the break
  // together with the first words, and could still use the spare.
  const inTheMiddle = (one: (typeof all)[number]) => one.mode === "streamed" && one.streamed !== pass;
  for (const some of Map.groupBy(all.filter(inTheMiddle), ({ name }) => name).values())
    await Promise.all(some.map(asked));
  await Promise.all(all.filter((one) => !inTheMiddle(one)).map(asked));
  for (const [key, one] of seen)
    outcomes.set(key, { seen: one, receipt: await endedReceipt(rig.sluice, one.requestId, { deadline_ms: 60_000 }) });
}, 120_000);
afterAll(() => rig.stop());

for (const one of all) {
  const verdict = one[one.mode === "streamed" ? "streamed" : "whole"];
  const engine = one.protocol === chat ? "" : `, an engine of ${one.protocol}`;
  test(`${one.name}, ${one.title}, ${one.caller}, ${one.mode}${engine}: ${verdict}`, () => {
    const { seen, receipt } = outcomes.get(one.key)!;
    const spares = verdict === pass && one.streamed !== pass ? 1 : one.spares;
    const firsts = rig.asked(one.key);
    // The same engine may get the request twice only if its reused connection was closed; the second time, on a new
    // connection.
    expect(firsts === 1 || (one.name === "s05" && firsts === 2)).toBe(true);
    expect(rig.asked(`ok-${one.key}`)).toBe(spares);
    expect(receipt.attempts).toBe(firsts + spares);
    if (verdict === pass) {
      const whole = { status: 200, isComplete: true, code: null, model: `acme/${one.key}`, outputTokens: 60 };
      expect(seen).toMatchObject(whole);
      expect(seen.text).toBe(canonical);
      // The text that the first engine sent, and no client received, is not charged.
      expect([receipt.outcome, receipt.usage.input_tokens]).toEqual(["completed", 9]);
    } else {
      // A stream of Responses has the same code, `server_error`, for all errors that the caller did not cause.
      const isStream = one.caller === "responses" && one.mode === "streamed" && seen.status === 200;
      expect(seen.code).toBe(isStream ? "server_error" : verdict);
      expect([seen.isComplete, receipt.outcome]).toEqual([false, "failed"]);
    }
  });
}

test("the record names the route that answered, and the attempts; metrics and the log tell of those that failed", async () => {
  const { seen } = outcomes.get("s16-chat-streamed")!;
  const { route } = await rig.sluice.json<{ route: object }>("request", "show", seen.requestId);
  expect(route).toMatchObject({ upstream: "canary-second", attempts: 2 });
  const metrics = await (await rig.sluice.fetch("/metrics")).text();
  const count = (outcome: string) =>
    Number(new RegExp(`upstream_attempts_total{upstream="",outcome="${outcome}"} (\\d+)`).exec(metrics)?.[1]);
  // Each fault was run with three protocols of clients in three modes, and some also with engines of two further
  // protocols.
  const counts = [count("refused"), count("busy"), count("rejected"), count("too_long")];
  expect(counts).toEqual([2 * 9 + 2, 2 * (9 + 2), 9 + 2, 9]);
  const refused = await linesThen(rig.sluice, "upstream_refused", 2 * 9 + 2);
  expect(refused).toHaveLength(2 * 9 + 2);
  // The lines are in no order, because the requests ran beside each other.
  expect(refused).toContainEqual(
    expect.objectContaining({ level: "error", upstream: "canary-first", status: expect.any(Number) }),
  );
});
