import { describe, expect, test } from "bun:test";
import { batcher } from "../../../src/core/admission/batcher.ts";
import { type EntranceSettings, entrance } from "../../../src/core/admission/entrance.ts";
import { HeardChanges } from "../../../src/core/admission/limits-in-force.ts";
import type { Reservation, Settlement } from "../../../src/core/admission/reservation.ts";
import type { Fault } from "../../../src/core/inference/fault.ts";
import type { Model } from "../../../src/core/inference/model.ts";
import type { Passed } from "../../../src/core/inference/request.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import { compact } from "../../../src/core/protocol/json.ts";
import type { Command, Grow, SettleAnswer } from "../../../src/core/store/ledger.ts";
import { noLimits, type Plan } from "../../../src/core/store/plan.ts";
import { saying } from "../../harness/request.ts";
import type { ModelSubject } from "../store/budget-model.ts";
import { newRequestId } from "../store/ledger-stores.ts";
import { CutLedger, organizationId, settled, VirtualClock } from "./virtual-time.ts";

const model: Model = {
  id: "acme/writer-1",
  ownedBy: "acme",
  created: 0,
  contextTokens: 100_000,
  outputTokens_max: 16_384,
  capabilities: new Set(),
  prices: { input: 2000, cachedInput: 1000, cacheWrite: 3000, output: 10_000 },
  extraParams: [],
};
const request = saying("", { model: model.id, turns: [] });
const ending: Settlement = {
  usage: noUsage,
  nanos: 0,
  outcome: "completed",
  stoppedBy: null,
  errorCode: null,
  route: null,
  reportRejected: null,
};

function node(change: Partial<EntranceSettings> = {}, changes = new HeardChanges()) {
  const clock = new VirtualClock();
  const ledger = new CutLedger(clock);
  const commands = batcher({ ledger, clock, random: () => 1 });
  const confirmed: SettleAnswer[] = [];
  const unrated = entrance(
    { batcher: commands, clock, changes, settled: (answer) => confirmed.push(answer) },
    { lease_ms: 60_000, checkpoint_ms: 2_000, grant_ms: () => 3_000, currency: "USD", ...change },
  );
  const sent = <V extends Command["verb"]>(verb: V) =>
    ledger.batches.flat().filter((one): one is Extract<Command, { verb: V }> => one.verb === verb);
  const enter = (
    options: {
      plan?: Partial<Plan>;
      /** Returns the plan in force now; null stands for the plan under which the request was admitted. */
      planNow?: () => Plan | null;
      cap?: number;
      stream?: boolean;
      inputTokens?: number;
      model?: Model;
      ahead?: (isSlight: boolean) => void;
      passed?: Passed;
    } = {},
  ) => {
    const plan = { ...noLimits, name: "pro", ...options.plan };
    const record = {
      requestId: newRequestId(),
      principal: { key: { id: "key_00000000000070008000000000000001" }, organization: { id: organizationId } },
      operation: "chat.completions",
      request: {
        ...request,
        ...compact({ outputTokens_max: options.cap, stream: options.stream, passed: options.passed }),
      },
      model: options.model ?? model,
      plan,
      inputTokens: options.inputTokens ?? 100,
    } as const;
    const planNow = () => options.planNow?.() ?? plan;
    const entering = unrated.enter(record, { planNow, ...compact({ ahead: options.ahead }) });
    entering.catch(() => {});
    return entering;
  };
  const entered = async (options?: Parameters<typeof enter>[0]): Promise<Reservation> => {
    const entering = enter(options);
    await clock.advance(10);
    return entering;
  };
  const refused = async (options?: Parameters<typeof enter>[0]): Promise<Fault> => {
    const entering = enter(options);
    await clock.advance(10);
    return entering.then(
      () => Promise.reject(new Error("it was admitted")),
      (fault) => fault,
    );
  };
  return { clock, ledger, commands, changes, confirmed, enter, entered, refused, sent };
}

/** Whether these tokens may leave, once the ledger has answered. */
async function permitted(clock: VirtualClock, reservation: Reservation, tokens: number): Promise<boolean> {
  const room = reservation.permits(tokens);
  await clock.advance(50);
  return room;
}

describe("the hold", () => {
  test("is input at the dearest input price, and an output step: the cap, the model's cap or 4,096 tokens", async () => {
    const { entered } = node();
    expect((await entered()).grant).toMatchObject({ nanos: 300 + 40_960, outputTokens: 4096, source: "plan" });
    expect((await entered({ cap: 50 })).grant).toMatchObject({ nanos: 300 + 500 });
    expect((await entered({ model: { ...model, outputTokens_max: 64 } })).grant).toMatchObject({ outputTokens: 64 });
  });

  test("is asked for under the plan that is in force then, though the request was prepared under another", async () => {
    const { entered, sent } = node();
    const session = 3_000_000;
    await entered({ planNow: () => ({ ...noLimits, name: "pro", session }) });
    expect(sent("admit")).toMatchObject([{ limits: { session } }]);
  });

  test("grows at half, ahead of need, and nobody waits", async () => {
    const { clock, entered, sent } = node();
    const reservation = await entered();
    expect(reservation.permits(2000)).toBe(true);
    expect(reservation.permits(2049)).toBe(true);
    await clock.advance(10);
    expect(sent("grow")).toHaveLength(1);
    expect(reservation.permits(8192)).toBe(true);
  });

  test("that was granted less than a step grows at half of what it has, and asks the ledger for nothing before", async () => {
    const { clock, entered, sent } = node();
    const reservation = await entered({ plan: { session: 300 + 10 * 1000 } });
    expect(reservation.grant.outputTokens).toBe(1000);
    expect(reservation.permits(500)).toBe(true);
    await clock.advance(10);
    expect(sent("grow")).toHaveLength(0);
    expect(reservation.permits(501)).toBe(true);
    await clock.advance(10);
    expect(sent("grow")).toHaveLength(1);
  });

  test("stays where the answer begins anew, and covers the new one: what was counted before takes nothing of it", async () => {
    const plan: Plan = { ...noLimits, name: "pro", session: 100_000 };
    let planNow: Plan | null = null;
    const it = node();
    const reservation = await it.entered({ plan, planNow: () => planNow, stream: false });
    reservation.progress({ ...noUsage, inputTokens: 1_000, outputTokens: 2_000 }, false);
    expect(reservation.permits(2_000)).toBe(true);
    reservation.restart();
    expect(reservation.permits(4_000)).toBe(true);
    reservation.restart();
    planNow = { ...plan, session: 3_000 };
    expect(await permitted(it.clock, reservation, 10)).toBe(true);
    // The growth's minimum covers only the input's 300 nanos, though 4,000 tokens had been counted before the restart.
    expect(it.sent("grow").at(-1)).toMatchObject({ limits: { session: 3_000 }, nanosTotal_min: 300 });
  });

  test("of what nobody streams is extended by checkpoints that say nothing was delivered", async () => {
    for (const stream of [false, true]) {
      const it = node();
      const reservation = await it.entered({ stream });
      reservation.progress({ ...noUsage, inputTokens: 90, outputTokens: 7 }, stream);
      await it.clock.advance(2_050);
      const usage = stream ? { inputTokens: 90, outputTokens: 7 } : { inputTokens: 0, outputTokens: 0 };
      expect(it.sent("checkpoint")).toMatchObject([{ number: 1, usage }]);
      await it.clock.advance(58_000);
      expect(reservation.signal.aborted).toBe(false);
    }
  });

  test("is reviewed under another plan before anything more leaves, and gives back what that has no room for", async () => {
    const plan: Plan = { ...noLimits, name: "pro", session: 100_000 };
    let planNow: Plan | null = null;
    const it = node();
    const reservation = await it.entered({ plan, planNow: () => planNow });
    expect(reservation.permits(100)).toBe(true);
    planNow = { ...plan, session: 3_000 };
    const room = reservation.permits(101);
    expect(room).toBeInstanceOf(Promise);
    await it.clock.advance(50);
    expect(await room).toBe(true);
    expect(it.sent("grow")[0]).toMatchObject({ limits: { session: 3_000 }, nanosTotal: 41_260, nanosTotal_min: 1_300 });
    expect(reservation.permits(270)).toBe(true);
    expect(await permitted(it.clock, reservation, 271)).toBe(false);

    planNow = { ...plan, session: 1e9 };
    expect(await permitted(it.clock, reservation, 271)).toBe(true);
    void reservation.settle(ending);
    await it.clock.advance(50);
    expect(it.sent("settle")[0]).toMatchObject({ limits: { session: 1e9 } });
  });

  test("is reviewed likewise when a limit of its key, its team or its organization changes, and of nobody else", async () => {
    const it = node();
    const team: ModelSubject = {
      ...{
        id: "team_1",
        subject: "team",
        limits: { session: 100_000, week: null, month: null, concurrentRequests: null },
      },
    };
    it.ledger.model.organizations.get(organizationId)!.subjectsOf = () => [team];
    const reservation = await it.entered();
    expect(reservation.permits(100)).toBe(true);
    it.changes.hear(["team_2", "key_of_another"]);
    expect(reservation.permits(100)).toBe(true);
    for (const subject of ["key_00000000000070008000000000000001", organizationId, "team_1"]) {
      team.limits = { ...team.limits, session: 3_000 };
      it.changes.hear([subject, "key_of_another"]);
      const room = reservation.permits(101);
      expect([subject, room]).toEqual([subject, expect.any(Promise)]);
      await it.clock.advance(50);
      expect(await room).toBe(true);
      expect(reservation.permits(101)).toBe(true);
    }
    expect(reservation.permits(270)).toBe(true);
    expect(await permitted(it.clock, reservation, 271)).toBe(false);
  });

  test("is reviewed first if a limit changed between the sending of the admission and its grant", async () => {
    const { clock, changes, enter } = node();
    const entering = enter();
    changes.hear([organizationId]);
    await clock.advance(10);
    expect((await entering).permits(1)).toBeInstanceOf(Promise);
  });

  test("lets nothing leave while nobody knows what a review has left of it: its answer was lost, and its time was over", async () => {
    const plan: Plan = { ...noLimits, name: "pro", session: 100_000 };
    let planNow: Plan | null = null;
    const it = node();
    const reservation = await it.entered({ plan, planNow: () => planNow });
    planNow = { ...plan, session: 3_000 };
    let isCarriedOut = false;
    it.ledger.wire = (commands) => {
      if (!commands.some(({ verb }) => verb === "grow")) return "well";
      if (isCarriedOut) return "down";
      isCarriedOut = true;
      return "unanswered";
    };
    const answers: boolean[] = [];
    const room = Promise.resolve(reservation.permits(300)).then((answer) => answers.push(answer));
    await it.clock.advance(70_000);
    expect(answers).toEqual([]);
    it.ledger.wire = () => "well";
    await it.clock.advance(5_000);
    await room;
    expect(answers).toEqual([false]);
  });

  test("covers tokens that are ready to leave, or they wait for its growth", async () => {
    const { clock, entered, sent } = node();
    const reservation = await entered();
    const room = reservation.permits(9_000);
    expect(room).toBeInstanceOf(Promise);
    await clock.advance(10);
    expect(await room).toBe(true);
    expect(sent("grow").at(-1)).toMatchObject({ nanosTotal_min: 300 + 90_000 });
  });

  test("never grows past the request's cap ahead of need", async () => {
    const { clock, entered, sent } = node();
    const small = await entered({ cap: 600 });
    expect(small.permits(600)).toBe(true);
    await clock.advance(10);
    expect(sent("grow")).toHaveLength(0);
    const large = await entered({ cap: 5000 });
    expect(large.permits(4096)).toBe(true);
    await clock.advance(10);
    expect(sent("grow").map((one: Grow) => one.nanosTotal)).toEqual([300 + 50_000]);
    const beyond = large.permits(5100); // The engine exceeds its cap, or the count is too high.
    await clock.advance(10);
    expect(await beyond).toBe(true);
  });

  test("uses a window to its end, to the token, and then says no", async () => {
    const { clock, ledger, entered } = node();
    const reservation = await entered({ plan: { session: 300 + 10 * 5000 } });
    expect(reservation.permits(4000)).toBe(true);
    await clock.advance(10);
    expect(reservation.permits(5000)).toBe(true);
    expect(await permitted(clock, reservation, 5001)).toBe(false);
    await Promise.all([
      reservation.settle({ ...ending, nanos: 300 + 50_000, stoppedBy: reservation.stoppingLimit() }),
      clock.advance(10),
    ]);
    expect([...ledger.model.records.values()]).toMatchObject([{ charged: 50_300, uncharged: 0 }]);
  });

  test("covers no token for which only a part of its price is left", async () => {
    const { clock, entered } = node();
    const reservation = await entered({ plan: { session: 300 + 10 * 5000 + 9 } });
    expect(reservation.permits(4000)).toBe(true);
    await clock.advance(10);
    expect(reservation.permits(5000)).toBe(true);
    expect(await permitted(clock, reservation, 5001)).toBe(false);
  });

  test("asks once more when the tokens are needed: room may have come free", async () => {
    const { clock, entered } = node();
    const plan = { session: 2 * (300 + 40_960) };
    const [one, other] = [await entered({ plan }), await entered({ plan })];
    expect(one.permits(4000)).toBe(true);
    await clock.advance(10);
    await Promise.all([other.settle(ending), clock.advance(10)]);
    expect(await permitted(clock, one, 4097)).toBe(true);
  });

  test("of a model whose output is free covers everything", async () => {
    const { entered } = node();
    const free = await entered({ model: { ...model, prices: { ...model.prices, output: 0 } }, plan: { session: 300 } });
    expect(free.permits(1e9)).toBe(true);
  });

  test("ends where no total can grow: an engine that says 10^9 tokens at a dear price on a plan without limits", async () => {
    const { clock, entered, sent } = node();
    const reservation = await entered({ model: { ...model, prices: { ...model.prices, output: 1e9 } } });
    const room = reservation.permits(1e9);
    await clock.advance(60_000);
    expect(await room).toBe(false);
    expect(sent("grow").length).toBeLessThan(4);
    const settled = reservation.settle({ ...ending, nanos: Number.POSITIVE_INFINITY });
    await clock.advance(10);
    await settled;
    expect(clock.timers).toBe(0);
  });

  test("covers less when the prompt turns out larger than estimated", async () => {
    const { clock, entered, sent } = node();
    const reservation = await entered();
    reservation.progress({ ...noUsage, inputTokens: 10_000, source: "reported" }, true);
    const room = reservation.permits(2200);
    expect(room).toBeInstanceOf(Promise);
    await clock.advance(10);
    expect(await room).toBe(true);
    expect(sent("grow")[0]).toMatchObject({ nanosTotal_min: 20_000 + 22_000 });
  });
});

describe("the lease", () => {
  async function endsAt(instant_ms: number, clock: VirtualClock, reservation: Reservation): Promise<void> {
    await clock.advance(instant_ms - 1 - clock.now_ms());
    expect(reservation.permits(1)).toBe(true);
    await clock.advance(1);
    expect(reservation.signal.aborted).toBe(true);
  }

  test("is extended every checkpoint by what was counted so far", async () => {
    const { clock, ledger, entered, sent } = node();
    const reservation = await entered();
    reservation.progress({ ...noUsage, inputTokens: 90, outputTokens: 5 }, true);
    await clock.advance(2_000);
    reservation.progress({ ...noUsage, inputTokens: 90, outputTokens: 9 }, true);
    await clock.advance(2_000);
    expect(sent("checkpoint").map(({ number, usage }) => [number, usage.outputTokens])).toEqual([
      [1, 5],
      [2, 9],
    ]);
    await clock.advance(600_000);
    expect(reservation.signal.aborted).toBe(false);
    expect(ledger.model.recover(10)).toBe(0);
    await Promise.all([reservation.settle(ending), clock.advance(10)]);
    expect(clock.timers).toBe(0);
  });

  test("ends the answer before it lapses when the store is away: counted from before the admission was sent", async () => {
    const { clock, ledger, entered } = node();
    const reservation = await entered();
    ledger.wire = () => "down";
    await clock.advance(54_980);
    expect(reservation.permits(1)).toBe(true);
    await clock.advance(20);
    expect(reservation.signal.aborted).toBe(true);
    expect(reservation.signal.reason).toMatchObject({ code: "storage_unavailable" });
    expect(() => reservation.permits(1)).toThrow("usage store");
    expect(ledger.model.recover(10)).toBe(0);
  });

  test("counts from before the admission was first sent, also when its answer was lost and came late", async () => {
    const { clock, ledger, enter } = node();
    const sentAt_ms = clock.now_ms();
    ledger.wire = () => "unanswered";
    const entering = enter();
    await clock.advance(2_000);
    ledger.wire = () => "well";
    await clock.advance(999);
    const reservation = await entering;
    ledger.wire = () => "down";
    await endsAt(sentAt_ms + 55_000, clock, reservation);
  });

  test("is extended from before the checkpoint was sent, however long its answer takes", async () => {
    const { clock, ledger, entered, sent } = node();
    const reservation = await entered();
    ledger.wire = () => new Promise((resolve) => void clock.after(1_500, () => resolve("well")));
    await clock.advance(1_990);
    expect(sent("checkpoint")).toHaveLength(1);
    const sentAt_ms = clock.now_ms();
    await clock.advance(1_500);
    ledger.wire = () => "down";
    await endsAt(sentAt_ms + 55_000, clock, reservation);
  });

  test("is extended by one checkpoint at a time: while one is unanswered no other is sent", async () => {
    const { clock, ledger, entered, sent } = node();
    const reservation = await entered();
    let answer = () => {};
    ledger.wire = () => new Promise((resolve) => (answer = () => resolve("well")));
    await clock.advance(9_000);
    expect(new Set(sent("checkpoint").map(({ number }) => number))).toEqual(new Set([1]));
    ledger.wire = () => "well";
    answer();
    await clock.advance(4_000);
    expect(sent("checkpoint").at(-1)!.number).toBeGreaterThan(1);
    expect(reservation.signal.aborted).toBe(false);
  });

  test("a node that was frozen past it forwards nothing, though no timer has told it yet", async () => {
    const { clock, entered } = node();
    const reservation = await entered();
    clock.freeze(56_000);
    expect(() => reservation.permits(1)).toThrow("usage store");
    expect(reservation.signal.aborted).toBe(true);
  });

  test("lost to another node's recovery ends the answer, and a wait for room", async () => {
    const { clock, ledger, entered } = node();
    const [one, other] = [await entered(), await entered()];
    ledger.wire = (batch) => (batch.some((command) => command.verb === "grow") ? "silent" : "well");
    const room = Promise.resolve(other.permits(5000));
    room.catch(() => {});
    await clock.advance(100);
    for (const hold of ledger.model.holds.values()) hold.leaseUntil_ms = 0;
    expect(ledger.model.recover(10)).toBe(2);
    await clock.advance(2_000);
    expect(one.signal.aborted).toBe(true);
    expect(room).rejects.toMatchObject({ code: "storage_unavailable" });
    await Promise.all([one.settle({ ...ending, nanos: 700 }), clock.advance(100)]);
    // The first request had forwarded output for 700 nanos. Its record is already written, so these nanos are settled
    // late, in an entry of their own.
    expect([...ledger.model.records.values()].map((record) => record.charged)).toEqual([0, 0, 700]);
  });
});

describe("the settlement", () => {
  test("is reported with its charge to the metrics, once, when the ledger has confirmed it", async () => {
    const { clock, entered, confirmed } = node();
    const reservation = await entered();
    void reservation.settle({ ...ending, nanos: 700 });
    void reservation.settle({ ...ending, nanos: 900 });
    expect(confirmed).toEqual([]);
    await clock.advance(10);
    expect(confirmed).toEqual([{ answer: "settled", charged: 700, uncharged: 0 }]);
  });

  test("is told once, and kept until the store has it", async () => {
    const { clock, ledger, commands, entered, sent } = node();
    const reservation = await entered();
    ledger.wire = () => "down";
    const settling = reservation.settle({ ...ending, nanos: 120, usage: { ...noUsage, outputTokens: 12 } });
    expect(reservation.settle({ ...ending, nanos: 999 })).toBe(settling);
    await clock.advance(600_000);
    expect(commands.waiting()).toBe(1);
    ledger.wire = () => "well";
    await clock.advance(2_000);
    await settling;
    expect([...ledger.model.records.values()]).toMatchObject([{ charged: 120 }]);
    expect(new Set(sent("settle").map((one) => one.nanos))).toEqual(new Set([120]));
    expect(reservation.signal.aborted).toBe(false);
  });

  test("names the last plan that was known, where reading it fails", async () => {
    const { clock, entered, sent } = node();
    let planNow = (): Plan | null => null;
    const reservation = await entered({ planNow: () => planNow() });
    const changed: Plan = { ...noLimits, name: "pro", session: 100_000 };
    planNow = () => changed;
    expect(await permitted(clock, reservation, 1)).toBe(true);
    planNow = () => {
      throw new Error("a defect");
    };
    await Promise.all([reservation.settle(ending), clock.advance(10)]);
    expect(sent("settle")).toMatchObject([{ limits: { session: 100_000 } }]);
  });

  test("books whatever an engine reported: no number, too many, fractions, below zero", async () => {
    const { clock, ledger, entered } = node();
    const mad = {
      ...noUsage,
      inputTokens: Number.NaN,
      outputTokens: -5,
      reasoningTokens: 1e300,
      cachedInputTokens: 0.5,
    };
    const reservation = await entered();
    reservation.progress(mad, true);
    await clock.advance(2_000);
    await Promise.all([
      reservation.settle({ ...ending, usage: mad, nanos: Number.POSITIVE_INFINITY }),
      clock.advance(10),
    ]);
    const [record] = ledger.model.records.values();
    expect(record).toMatchObject({
      charged: 1e15,
      usage: { inputTokens: 0, outputTokens: 0, reasoningTokens: 0, cachedInputTokens: 1 },
    });
  });
});

describe("a refusal", () => {
  test("for want of an answer leaves a record of nothing, so that the admission cannot run later", async () => {
    const { clock, ledger, enter, sent } = node();
    ledger.wire = () => "unanswered"; // The hold was granted, but no answer reached the node.
    const entering = enter({
      passed: { inputs: 3, makesText: false, largestTokens: 1, texts: () => [], release() {} },
    });
    await clock.advance(3_000);
    expect(entering).rejects.toMatchObject({ code: "storage_unavailable" });
    ledger.wire = () => "well";
    await clock.advance(2_000);
    await settled();
    expect(ledger.model.holds.size).toBe(0);
    expect([...ledger.model.records.values()]).toMatchObject([{ charged: 0, outcome: "failed" }]);
    expect(sent("settle").at(-1)).toMatchObject({ inputs: 3 });
  });
});

test("an engine is asked ahead of the grant only while the last answer gave ample room: a refusal or an outage ends that", async () => {
  const { clock, ledger, enter, entered, refused } = node();
  let asked = 0;
  const ahead = () => void asked++;
  await entered({ ahead });
  expect(asked).toBe(0);
  await entered({ ahead });
  expect(asked).toBe(1);
  await refused({ plan: { session: 1 } });
  await entered({ ahead });
  expect(asked).toBe(1);
  ledger.wire = () => "down";
  enter();
  await clock.advance(3_100);
  ledger.wire = () => "well";
  await clock.advance(1_000);
  await entered({ ahead });
  expect(asked).toBe(1);
});

test("a hold is slight if it covers the whole cap of an answer that is not streamed, and a hundred of it fit", async () => {
  const { entered } = node();
  const told: boolean[] = [];
  const isSlight = async (options: Parameters<typeof entered>[0]) => {
    const { isSlight: granted } = await entered({ ahead: (ahead) => told.push(ahead), ...options });
    return granted;
  };
  const nanos = 300 + 40_960;
  expect(await isSlight({ cap: 4096, stream: false, plan: { week: 100 * nanos } })).toBe(true);
  // These requests are not slight: the limit has room for a hundred holds, but one of them exists already.
  expect(await isSlight({ cap: 4096, stream: false, plan: { week: 101 * nanos - 1 } })).toBe(false);
  expect(await isSlight({ cap: 4097, stream: false })).toBe(false);
  expect(await isSlight({ cap: 4096, stream: true })).toBe(false);
  expect(await isSlight({ cap: 4096, stream: false })).toBe(true);
  // Before the grant, `isSlight` is judged by the limits that the last grant reported. Before the first request there
  // is no such grant.
  expect(told).toEqual([true, false, false, true]);
});

test("where asking ahead fails, the request is granted all the same, and nothing is left held", async () => {
  const { clock, ledger, entered } = node();
  const first = await entered();
  const reservation = await entered({
    ahead() {
      throw new Error("a defect");
    },
  });
  expect(ledger.model.holds.size).toBe(2);
  for (const one of [first, reservation]) await Promise.all([one.settle(ending), clock.advance(10)]);
  expect(ledger.model.holds.size).toBe(0);
});
