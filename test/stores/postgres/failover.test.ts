// A replica takes over from its primary. Running nodes, and a node that starts afterwards, notice and report the data
// that the primary had confirmed and the replica never received; the service goes on. With a synchronous replica, no
// data are lost.

import { expect, setDefaultTimeout, test } from "bun:test";
import { inWords, type Money } from "../../../src/core/inference/money.ts";
import { endedAfterEach } from "../../harness/endings.ts";
import { linesOf, linesThen } from "../../harness/log-lines.ts";
import { type Pair, startPair } from "../../harness/replica.ts";
import { redisUrl } from "../../harness/services.ts";
import { type Sluice, type SluiceOptions, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { chat, served } from "./served.ts";

setDefaultTimeout(240_000);

const running = endedAfterEach();

async function pairOf(...settings: string[]): Promise<Pair> {
  const pair = await startPair(settings);
  running.push(pair.stop);
  return pair;
}

async function nodeOn(pair: Pair, options: SluiceOptions = {}): Promise<Sluice> {
  const sluice = await startSluice({ store: "pglite", ...options, env: { DATABASE_URL: pair.url, ...options.env } });
  running.push(() => sluice.stop().catch(() => {}));
  return sluice;
}

/** Serves requests, and returns their IDs when their receipts say that they have ended. */
const serve = (sluice: Sluice, count: number) => Promise.all(Array.from({ length: count }, () => served(sluice)));
const receipt = (sluice: Sluice, id: string) => sluice.fetch(`/v1/service/requests/${id}`);
const statuses = (sluice: Sluice, ids: string[]) =>
  Promise.all(ids.map(async (id) => (await receipt(sluice, id)).status));
const recordsOf = async (pair: Pair, server: Pair["primary"]) =>
  (await pair.ask<{ count: string }>(server, "select count(*) from usage_record"))[0]!.count;

/** Serves requests that both servers store, and then some that only the primary stores. */
async function servedApart(pair: Pair, sluice: Sluice): Promise<{ kept: string[]; lost: string[] }> {
  const kept = await serve(sluice, 2);
  await until(async () => (await recordsOf(pair, pair.replica)) === "2", 20_000, "the replica to have the records");
  await pair.cutOff();
  return { kept, lost: await serve(sluice, 3) };
}

const lostBy = (sluice: Sluice) => linesThen(sluice, "receipts_lost", 1);
const movesOf = (sluice: Sluice) => linesThen(sluice, "database_moved", 1);

test("a node that runs while a replica takes over says what was lost, and goes on", async () => {
  const pair = await pairOf();
  const sluice = await nodeOn(pair);
  const { kept, lost } = await servedApart(pair, sluice);
  expect((await sluice.cli("usage", "check")).stderr).toBe("");

  await pair.failOver();
  const [said] = await lostBy(sluice);
  expect(said).toMatchObject({ receipts: 3, requests: expect.arrayContaining(lost) });
  expect(await movesOf(sluice)).toMatchObject([{ from: { timeline: 1 }, to: { timeline: 2 } }]);
  const metrics = await (await sluice.fetch("/metrics")).text();
  expect(metrics).toMatch(/^usage_receipts_lost_total 3$/m);
  expect(metrics).toMatch(/^database_timeline 2$/m);

  expect(await statuses(sluice, kept)).toEqual([200, 200]);
  expect(await statuses(sluice, lost)).toEqual([404, 404, 404]);
  expect(await statuses(sluice, await serve(sluice, 1))).toEqual([200]);
  const check = await sluice.cli("usage", "check");
  expect(check.code).toBe(0);
  expect(check.stderr).toContain("The database was promoted or restored");
  expect(check.stderr).toContain(`at least 3 settled requests of ${inWords(said!.charged as Money)}`);
  expect(linesOf(sluice, "receipts_lost")).toHaveLength(1);
});

test("a node that starts after a replica took over knows by Redis what was lost", async () => {
  const pair = await pairOf();
  const env = { REDIS_URL: await redisUrl() };
  const before = await nodeOn(pair, { env });
  const { lost } = await servedApart(pair, before);
  const [{ ledger_id }] = (await pair.ask<{ ledger_id: string }>(
    pair.primary,
    "select ledger_id from usage_ledger",
  )) as [{ ledger_id: string }];
  const redis = new Bun.RedisClient(env.REDIS_URL);
  const remembered = async () => Number(await redis.send("LLEN", [`sluice:receipts:{${ledger_id}}`]));
  await until(async () => (await remembered()) === 5, 20_000, "Redis to remember the receipts");
  redis.close();
  before.signal("SIGKILL");
  await before.exited;
  await pair.failOver();

  const after = await nodeOn(pair, { env, dataDir: before.dataDir });
  expect(await lostBy(after)).toMatchObject([{ receipts: 3, requests: expect.arrayContaining(lost) }]);
  expect(await movesOf(after)).toMatchObject([{ from: { timeline: 1 }, to: { timeline: 2 } }]);
});

for (const mode of ["on", "remote_apply"]) {
  test(`with a synchronous replica nothing is lost, and without it nothing is confirmed (${mode})`, async () => {
    const pair = await pairOf("synchronous_standby_names=replica", `synchronous_commit=${mode}`);
    const sluice = await nodeOn(pair);
    const ids = await serve(sluice, 5);
    await pair.cutOff();
    const refused = await chat(sluice);
    expect(refused.status).toBe(503);
    expect(await refused.text()).toContain("storage_unavailable");

    await pair.failOver();
    await movesOf(sluice);
    expect(await statuses(sluice, ids)).toEqual([200, 200, 200, 200, 200]);
    expect(await statuses(sluice, await serve(sluice, 1))).toEqual([200]);
    expect(linesOf(sluice, "receipts_lost")).toEqual([]);
    expect((await sluice.cli("usage", "check")).stderr).not.toContain("Lost with it");
  });
}
