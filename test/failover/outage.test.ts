/**
 * What FailoverBench's catalogue of faults does not have: engines that come back, clients that leave, and routes that
 * are all dead.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { lineOf } from "../harness/log-lines.ts";
import { dollars, nanosOf } from "../harness/money.ts";
import { endedReceipt } from "../harness/receipts.ts";
import { until } from "../harness/until.ts";
import { asks, bodyOf } from "./callers.ts";
import { type Rig, startRig } from "./rig.ts";
import { canonical } from "./wall.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig([
    {
      id: "acme/dead",
      routes: [0, 1, 2].map((priority) => ({ wall: "dead" as const, model: `dead-${priority}`, priority })),
    },
    { id: "acme/forever", routes: [{ wall: 0, model: "forever" }] },
    {
      id: "acme/left",
      routes: ["s04-left", "s06-left", "ok-left"].map((model, index) => ({ wall: index, model, priority: index })),
    },
    {
      id: "acme/flap",
      routes: [
        { wall: 0, model: "flap" },
        { wall: 1, model: "ok-flap", priority: 1 },
      ],
    },
  ]);
}, 60_000);
afterAll(() => rig.stop());

test("all routes of a model on one dead host: one clear error, one record, nothing charged", async () => {
  for (const stream of [true, false]) {
    const seen = await asks(rig.sluice, "chat", "acme/dead", stream);
    expect(seen).toMatchObject({ status: 503, code: "upstream_unavailable", retryAfter: "1" });
    const receipt = await endedReceipt(rig.sluice, seen.requestId);
    expect(receipt).toMatchObject({ outcome: "failed", attempts: 3, error_code: "upstream_unavailable" });
    expect(nanosOf(receipt.cost.charged)).toBe(0);
  }
});

test("an engine that is full for thirty years: the caller is asked to wait a minute", async () => {
  const seen = await asks(rig.sluice, "messages", "acme/forever", true);
  expect(seen).toMatchObject({ status: 429, code: "capacity_exceeded", retryAfter: "60" });
  expect(await endedReceipt(rig.sluice, seen.requestId)).toMatchObject({ attempts: 1, cost: { charged: dollars(0) } });
});

test("a client that leaves during the second attempt ends it: one record, and no third", async () => {
  const leaving = new AbortController();
  const asking = fetch(`${rig.sluice.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${rig.sluice.key}`, "content-type": "application/json" },
    body: JSON.stringify(bodyOf("chat", "acme/left", true)),
    signal: leaving.signal,
  }).catch(() => null);
  await until(() => rig.asked("s06-left") === 1, 20_000, "the second attempt");
  leaving.abort();
  await asking;
  const line = await lineOf(rig.sluice, { event: "request", model: "acme/left" });
  const receipt = await endedReceipt(rig.sluice, line.request_id);
  expect(receipt).toMatchObject({ outcome: "cancelled", attempts: 2 });
  expect(rig.asked("ok-left")).toBe(0);
});

test("S15: while the first engine is down the spare serves; it is probed one request at a time, and used again when it is back", async () => {
  const [first] = rig.walls;
  first!.set("flap", "s15");
  for (let count = 0; count < 12; count++) {
    expect(await asks(rig.sluice, "chat", "acme/flap", count % 2 === 0)).toMatchObject({
      status: 200,
      text: canonical,
    });
  }
  // Three failures open the breaker; a slow machine may see a probe or two.
  expect(rig.asked("flap")).toBeLessThan(8);
  first!.set("flap", "ok");
  const before = () => rig.asked("ok-flap");
  const isBack = async () => {
    const spares = before();
    const seen = await asks(rig.sluice, "chat", "acme/flap", true);
    expect(seen).toMatchObject({ status: 200, text: canonical });
    return before() === spares;
  };
  await until(isBack, 30_000, "the first engine to be used again");
}, 90_000);
