/** Requests in flight while the name of their engines begins to resolve to other addresses, over real sockets. */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { replicas } from "../../../src/core/routing/replicas.ts";
import { client } from "../../../src/core/upstream/http1/client.ts";
import type { Upstream } from "../../../src/core/upstream/target.ts";
import { Attempts, type AttemptsParts } from "../../../src/core/usage/attempts.ts";
import { type Engine, startEngine } from "../../failover/engine.ts";
import { attemptsParts, recordOf } from "../../harness/patience.ts";
import { saying } from "../../harness/request.ts";
import { until } from "../../harness/until.ts";
import { capacityOf, modelOf, routeTo, upstreamOf } from "../routing/models.ts";
import { attempting, eventsOf } from "./attempting.ts";

let engines: [Engine, Engine];
const sender = client();
beforeAll(() => {
  const first = startEngine();
  engines = [first, startEngine({ hostname: "127.0.0.2", port: Number(new URL(first.url).port) })];
});
afterEach(() => {
  for (const engine of engines) Object.assign(engine, { asked: [], isSick: false, delay_ms: 20 });
});
afterAll(async () => {
  sender.close();
  await Promise.all(engines.map((engine) => engine.stop()));
});

const capacity = capacityOf({ concurrent_max: 1 });

/** A model whose engines are behind one name, which resolves to the addresses that the test gives. */
function rig(more: Partial<Upstream> = {}) {
  const resolve = { interval_ms: 100, addresses_max: 4, family: "all", servers: [] } as const;
  const url = `http://engines.localhost:${new URL(engines[0].url).port}/v1`;
  const model = modelOf([routeTo(upstreamOf(url, { resolve, ...more }))]);
  let addresses: string[] = [];
  const known = replicas(() => addresses);
  const parts: AttemptsParts = attemptsParts({ client: sender, replicas: known });
  return {
    leadsTo(...to: string[]) {
      addresses = to;
      known.changed();
    },
    waiting: () => known.routesOf(model).reduce((sum, route) => sum + parts.queues.lengthOf(route), 0),
    async asks(content: string) {
      const opened = new Attempts(parts, attempting(recordOf(model, saying(content, { model: model.id }))));
      const events = await eventsOf(opened);
      const tried = opened.progress.tried.map(({ replica, outcome }) => `${replica} ${outcome}`);
      return { end: events.at(-1)!, tried };
    },
  };
}

test("an attempt that fails is followed by one at an address that is new, and none at one that is gone", async () => {
  const { leadsTo, asks } = rig();
  leadsTo("127.0.0.1", "127.0.0.3");
  Object.assign(engines[0], { isSick: true, delay_ms: 500 });
  // The first attempt may go to either of the two addresses; nobody listens at the second.
  const asking = asks("one");
  await until(() => engines[0].inFlight === 1, 10_000, "the first attempt");
  leadsTo("127.0.0.2");
  const { end, tried } = await asking;
  expect(end.type).toBe("response-end");
  expect(tried.filter((one) => !one.startsWith("127.0.0.3"))).toEqual(["127.0.0.1 failed", "127.0.0.2 answered"]);
  expect(engines[1].asked).toHaveLength(1);
});

test("a request that waits for room goes to an address that is new as soon as it is there", async () => {
  const { leadsTo, asks, waiting } = rig({ capacity });
  leadsTo("127.0.0.1");
  engines[0].delay_ms = 3_000;
  const first = asks("one");
  await until(() => engines[0].inFlight === 1, 10_000, "the engine to be full");
  const second = asks("two");
  await until(() => waiting() === 1, 10_000, "the second to wait");
  leadsTo("127.0.0.1", "127.0.0.2");
  expect(await second).toMatchObject({ end: { type: "response-end" }, tried: ["127.0.0.2 answered"] });
  expect(engines[0].inFlight).toBe(1);
  await first;
});

test("a request that waits at an address that goes, goes where the name leads; what runs there ends there", async () => {
  const { leadsTo, asks, waiting } = rig({ capacity });
  leadsTo("127.0.0.1");
  engines[0].delay_ms = 1_000;
  const first = asks("one");
  await until(() => engines[0].inFlight === 1, 10_000, "the engine to be full");
  const others = [asks("two"), asks("three")];
  await until(() => waiting() === 2, 10_000, "two to wait");
  leadsTo("127.0.0.2");
  const told = await Promise.all(others);
  expect(told.map(({ tried }) => tried)).toEqual([["127.0.0.2 answered"], ["127.0.0.2 answered"]]);
  expect(engines[1].most).toBe(1);
  expect(await first).toMatchObject({ end: { type: "response-end" }, tried: ["127.0.0.1 answered"] });
  expect(engines[0].asked).toHaveLength(1);
});
