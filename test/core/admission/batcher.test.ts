import { expect, test } from "bun:test";
import { type BatcherSettings, batcher, batcherSettings } from "../../../src/core/admission/batcher.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import type { Checkpoint } from "../../../src/core/store/ledger.ts";
import { admitOf, settleOf } from "../store/ledger-stores.ts";
import { CutLedger, organizationId, settled, VirtualClock } from "./virtual-time.ts";

function setting(change: Partial<BatcherSettings> = {}) {
  const clock = new VirtualClock();
  const ledger = new CutLedger(clock);
  const failures: number[] = [];
  const commands = batcher(
    { ledger, clock, random: () => 1, failed: (_, count) => failures.push(count) },
    { ...batcherSettings, ...change },
  );
  return { clock, ledger, commands, failures };
}
const admit = () => admitOf(organizationId);
const checkpointOf = (requestId: string): Checkpoint => ({
  verb: "checkpoint",
  requestId,
  organizationId,
  number: 1,
  usage: noUsage,
  lease_ms: 60_000,
});

const admitted = (commands: ReturnType<typeof setting>["commands"], count: number) =>
  Array.from({ length: count }, () => commands.submit(admit()));

test("a batch leaves at once with all that was submitted together; behind a crowd the next leaves 5 ms later", async () => {
  const { clock, ledger, commands } = setting();
  const first = admitted(commands, 3);
  await settled();
  expect(ledger.batches.map((batch) => batch.length)).toEqual([3]);
  expect((await Promise.all(first)).map((one) => one.answer)).toEqual(["granted", "granted", "granted"]);
  const later = admitted(commands, 2);
  await clock.advance(4);
  expect(ledger.batches).toHaveLength(1);
  await clock.advance(1);
  expect(ledger.batches.map((batch) => batch.length)).toEqual([3, 2]);
  await Promise.all(later);
  const last = commands.submit(admit());
  await clock.advance(2);
  expect(ledger.batches).toHaveLength(2);
  await clock.advance(1);
  expect((await last).answer).toBe("granted");
});

test("requests that come one after another wait for no timer, and take the settlement before them along", async () => {
  const { clock, ledger, commands } = setting();
  const settlements: Promise<unknown>[] = [];
  for (let count = 0; count < 10; count++) {
    const request = admit();
    expect((await commands.submit(request)).answer).toBe("granted");
    settlements.push(commands.submit(settleOf(request, 10)));
    await settled();
  }
  expect(ledger.batches.map((batch) => batch.length)).toEqual([1, ...new Array<number>(9).fill(2)]);
  expect(commands.waiting()).toBe(1);
  await clock.advance(5);
  await Promise.all(settlements);
  expect(ledger.batches.at(-1)).toHaveLength(1);
  expect(clock.timers).toBe(0);
});

test("what comes while a batch is on its way gathers, and leaves together when it is answered", async () => {
  const { clock, ledger, commands } = setting();
  const arrival = Promise.withResolvers<"well">();
  ledger.wire = () => arrival.promise;
  const all = [commands.submit(admit())];
  await settled();
  all.push(...admitted(commands, 2));
  await clock.advance(1);
  expect(ledger.batches).toHaveLength(1);
  arrival.resolve("well");
  expect((await Promise.all(all)).map((one) => one.answer)).toEqual(["granted", "granted", "granted"]);
  expect(ledger.batches.map((batch) => batch.length)).toEqual([1, 2]);
});

test("behind a batch that the store keeps for longer, the next leaves 5 ms later", async () => {
  const { clock, ledger, commands } = setting();
  ledger.wire = () => "silent";
  commands.submit(admit()).catch(() => {});
  await settled();
  ledger.wire = () => "well";
  const next = commands.submit(admit());
  await clock.advance(4);
  expect(ledger.batches).toHaveLength(1);
  await clock.advance(1);
  expect((await next).answer).toBe("granted");
});

test("what is done but unanswered is sent again, and done once", async () => {
  const { clock, ledger, commands } = setting();
  const request = admit();
  await commands.submit(request);
  ledger.wire = () => "unanswered";
  const settlement = commands.submit(settleOf(request, 700));
  await clock.advance(1_000);
  expect(ledger.batches.length).toBeGreaterThan(3);
  ledger.wire = () => "well";
  await clock.advance(2_000);
  expect(await settlement).toEqual({ answer: "already" });
  expect(ledger.model.records.get(request.requestId)).toMatchObject({ charged: 700 });
  expect(commands.waiting()).toBe(0);
});

test("an admission ends at its deadline as storage_unavailable, also when the store never says a word", async () => {
  for (const wire of ["down", "silent"] as const) {
    const { clock, ledger, commands } = setting();
    ledger.wire = () => wire;
    const answer = commands.submit(admit(), clock.now_ms() + 3_000);
    answer.catch(() => {});
    await clock.advance(2_999);
    expect(Bun.peek.status(answer)).toBe("pending");
    await clock.advance(1);
    expect(answer).rejects.toMatchObject({ code: "storage_unavailable", details: { retryAfterSeconds: 5 } });
    await clock.advance(60_000);
    expect(clock.timers).toBe(0);
  }
});

test("a settlement waits for as long as the store is away; a checkpoint does not, for the next one says more", async () => {
  const { clock, ledger, commands } = setting();
  const request = admit();
  await commands.submit(request);
  ledger.wire = () => "down";
  const checkpoint = commands.submit(checkpointOf(request.requestId));
  checkpoint.catch(() => {});
  const settlement = commands.submit(settleOf(request, 10));
  await clock.advance(3_600_000);
  expect(checkpoint).rejects.toThrow("the store is away");
  expect(commands.waiting()).toBe(1);
  expect(commands.silence_ms()).toBeGreaterThan(3_500_000);
  ledger.wire = () => "well";
  await clock.advance(1_000);
  expect(await settlement).toEqual({ answer: "settled", charged: 10, uncharged: 0 });
  expect(commands.silence_ms()).toBe(0);
});

test("a command that no store will ever take holds up none of the others", async () => {
  const { clock, ledger, commands } = setting();
  const poison = admit();
  ledger.wire = (batch) => (batch.some((one) => one.requestId === poison.requestId) ? "down" : "well");
  const poisoned = commands.submit(settleOf(poison, 1));
  const others = Array.from({ length: 500 }, () => commands.submit(admit(), clock.now_ms() + 3_000));
  await clock.advance(2_000);
  expect((await Promise.all(others)).every((one) => one.answer === "granted")).toBe(true);
  const before = ledger.batches.length;
  await clock.advance(10_000);
  expect(ledger.batches.length).toBeGreaterThan(before);
  expect(ledger.batches.slice(before).every((batch) => batch.length === 1)).toBe(true);
  const late = commands.submit(admit());
  await settled();
  await clock.advance(10);
  expect((await late).answer).toBe("granted");
  ledger.wire = () => "well";
  await clock.advance(2_000);
  expect((await poisoned).answer).toBe("settled");
});

test("while too many settlements wait, nothing new is admitted", async () => {
  const { clock, ledger, commands } = setting({ settlements_waiting_max: 3 });
  const requests = [admit(), admit(), admit()];
  await Promise.all([...requests.map((one) => commands.submit(one)), clock.advance(10)]);
  ledger.wire = () => "down";
  const settlements = requests.map((one) => commands.submit(settleOf(one, 1)));
  expect(commands.submit(admit())).rejects.toBeInstanceOf(Fault);
  ledger.wire = () => "well";
  await clock.advance(100);
  await Promise.all(settlements);
  const answer = commands.submit(admit());
  await clock.advance(10);
  expect((await answer).answer).toBe("granted");
});

test("a stop sends every settlement that waits, and says how many the store did not confirm in time", async () => {
  const { clock, ledger, commands } = setting();
  const [one, other] = [admit(), admit()];
  await Promise.all([commands.submit(one), commands.submit(other), clock.advance(10)]);
  const settlement = commands.submit(settleOf(one, 5));
  expect(await commands.stop(1_000)).toBe(0);
  expect((await settlement).answer).toBe("settled");
  expect(commands.submit(admit())).rejects.toMatchObject({ code: "storage_unavailable" });
  const { requestId, limits } = other;
  const amounts = { limits, nanosTotal: 900, nanosTotal_min: 0 };
  const grow = { verb: "grow", requestId, organizationId, number: 1, ...amounts } as const;
  const growth = commands.submit(grow);
  await clock.advance(10);
  expect((await growth).answer).toBe("granted");

  ledger.wire = () => "silent";
  commands.submit(settleOf(other, 5));
  const stopping = commands.stop(1_000);
  await clock.advance(1_000);
  expect(await stopping).toBe(1);
});

test("a stop ends at once where no settlement waits", async () => {
  const { commands } = setting();
  const stopping = commands.stop(60_000);
  await settled();
  expect(Bun.peek(stopping)).toBe(0);
});

test("nor does it after an outage: it is sent alone, and more and more seldom", async () => {
  const { clock, ledger, commands } = setting();
  const poison = admit();
  const isPoisoned = (batch: readonly { requestId: string }[]) =>
    batch.some(({ requestId }) => requestId === poison.requestId);
  ledger.wire = () => "down";
  commands.submit(settleOf(poison, 1));
  await clock.advance(30_000);
  ledger.wire = (batch) => (isPoisoned(batch as { requestId: string }[]) ? "down" : "well");
  const others = async () => {
    for (let count = 0; count < 100; count++) {
      const other = commands.submit(admit());
      await clock.advance(50);
      await other;
    }
  };
  await others();
  const before = ledger.batches.length;
  await others();
  const refused = ledger.batches.slice(before).filter((batch) => isPoisoned(batch as { requestId: string }[]));
  expect(refused.length).toBeWithin(1, 10);
  expect(refused.every((batch) => batch.length === 1)).toBe(true);
});
