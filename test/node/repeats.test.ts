/**
 * Repeats on two nodes with one database, with Redis and without: they join an answer of the other node, and when that
 * node is killed they get what it had written, then the protocol's failure, and then a new run; at most one run is
 * charged.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RequestReceipt } from "../../src/features/receipts/receipt-shape.ts";
import { inferenceBodies, model, type Service, startService } from "../harness/engine.ts";
import { migratedDatabase } from "../harness/migrated-database.ts";
import { dollars } from "../harness/money.ts";
import { redisUrl } from "../harness/services.ts";
import type { Sluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";

setDefaultTimeout(90_000);

const paths = Object.keys(inferenceBodies);
const metering = "{ lease_s: 2, checkpoint_s: 0.3, sweep_s: 0.3 }";

describe.each(["the database", "Redis"])("with logs in %s", (place) => {
  let database: Awaited<ReturnType<typeof migratedDatabase>>;
  let first: Service;
  let second: Service;
  let env: Record<string, string>;
  let folder: string;
  beforeAll(async () => {
    database = await migratedDatabase();
    folder = mkdtempSync(join(tmpdir(), "sluice-repeats-"));
    env = { DATABASE_URL: database.url, ...(place === "Redis" ? { REDIS_URL: await redisUrl() } : {}) };
    const options = {
      metering,
      engine: { directives: "", namesModel: false },
      sluice: { store: "postgres", env },
    } as const;
    first = await startService(options);
    // With a data folder of its own, the second node makes no organization.
    second = await startService({ ...options, sluice: { ...options.sluice, dataDir: folder } });
  });
  afterAll(async () => {
    await second.stop();
    await first.engine.stop();
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  const ask = (node: Sluice, path: string, directives: string, key: string, stream: boolean) =>
    node.post(
      path,
      { model, ...inferenceBodies[path]!(directives), stream },
      { key: first.key, headers: { "idempotency-key": key } },
    );
  /** Asks as SDKs do: again after 503, which a store that takes longer than three seconds gives on a busy machine. */
  async function untilTaken(asked: () => Promise<Response>): Promise<Response> {
    for (let tries = 0; ; tries++) {
      const response = await asked();
      if (response.status !== 503 || tries === 10) return response;
      await Bun.sleep(1000 * Number(response.headers.get("retry-after")));
    }
  }
  async function receiptOf(id: string): Promise<RequestReceipt> {
    const response = await second.fetch(`/v1/service/requests/${id}`, { key: first.key });
    return (await response.json()) as RequestReceipt;
  }

  test.each(paths)("%s: a repeat at the other node joins the answer", async (path) => {
    for (const stream of [true, false]) {
      const key = crypto.randomUUID();
      const before = first.engine.counts.requests;
      const answer = ask(first, path, "tokens=30 tps=30", key, stream);
      await until(() => first.engine.counts.requests > before, 5_000, "the engine to be asked");
      const again = ask(second, path, "tokens=30 tps=30", key, stream);
      expect(await (await again).text()).toBe(await (await answer).text());
    }
    expect(second.engine.counts.requests).toBe(0);
  });

  test("a node that is killed: what it wrote, the failure once, a new run, and one charge", async () => {
    const open = await Promise.all(
      paths.flatMap((path) =>
        [true, false].map(async (stream) => {
          const key = crypto.randomUUID();
          const before = first.engine.counts.requests;
          const answer = ask(first, path, "tokens=400 tps=20", key, stream);
          if (!stream) return { path, stream, key, text: "", answer: answer.catch(() => null), before };
          const reader = (await answer).body!.getReader();
          let text = "";
          while (!text.includes(" You")) text += new TextDecoder().decode((await reader.read()).value);
          void reader.read().catch(() => {});
          return { path, stream, key, text, id: (await answer).headers.get("x-service-request-id")!, answer, before };
        }),
      ),
    );
    await until(() => first.engine.counts.requests >= 6, 5_000, "the engine to be asked");
    // The last batch is on its way to the log for a tenth of a second.
    await Bun.sleep(300);
    first.signal("SIGKILL");
    await first.exited;
    await Promise.all(open.map(({ answer }) => answer.catch(() => null)));
    await Promise.all(
      open.map(async ({ path, stream, key, text, id }) => {
        if (stream) {
          const broken = await ask(second, path, "tokens=400 tps=20", key, true);
          expect([broken.status, broken.headers.get("x-service-replay-of")]).toEqual([200, id!]);
          const all = await broken.text();
          expect(all.replaceAll(": waiting\n\n", "").startsWith(text)).toBeTrue();
          expect(all).toContain("node that wrote it is gone");
          expect(await receiptOf(id!)).toMatchObject({
            recovered: true,
            outcome: "failed",
            cost: { charged: dollars(0) },
          });
        }
        const anew = await untilTaken(() => ask(second, path, "tokens=400 tps=20", key, stream));
        const headers = ["x-service-replay-of", "x-service-request-id"].map((name) => anew.headers.get(name));
        await anew.body?.cancel();
        expect([anew.status, headers[0]]).toEqual([200, null]);
        expect(headers[1]).not.toBe(id);
      }),
    );
  });
});
