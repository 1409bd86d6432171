/**
 * A run (the work on a request) whose answer is kept, and whose client has left, is ended by whatever ends other runs.
 * A revoked key, a suspended organization and a lowered limit end it at once, and a drain waits for it no longer than
 * for others.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RequestReceipt } from "../../../src/core/operations/receipt-shape.ts";
import { busyness } from "../../harness/busyness.ts";
import { model, type Service, says, startService } from "../../harness/engine.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { nanosOf } from "../../harness/money.ts";
import { newMember } from "../../harness/organizations.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(90_000);

const path = "/v1/chat/completions";
/** Directives for an answer that is long enough not to end by itself while a test looks. */
const long = "tokens=16000 tps=50";

interface Asked {
  directives: string;
  stream: boolean;
  /** The idempotency key. */
  repeat: string;
  /** An API key, if not the service's default one. */
  key?: string;
}

function ask(of: Service, { directives, stream, repeat, key = of.key }: Asked, signal?: AbortSignal) {
  const body = { model, messages: says(directives, repeat), stream };
  return of.post(path, body, { key, headers: { "idempotency-key": repeat }, ...(signal && { signal }) });
}

/** Sends a request, and leaves when the engine has it. Returns the engine's record of the request. */
async function left(of: Service, asked: Asked) {
  const leaving = new AbortController();
  const answer = ask(of, asked, leaving.signal).catch(() => null);
  const run = () => of.engine.requests.find(({ body }) => JSON.stringify(body).includes(asked.repeat));
  await until(() => run() !== undefined, 5_000, "the engine to be asked");
  if (asked.stream) await (await answer)!.body!.getReader().read();
  leaving.abort();
  await answer;
  return run()!;
}

describe("is ended", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({
      engine: { directives: "", namesModel: false },
      metering: "{ checkpoint_s: 0.5 }",
      plans: { limitless: "{}" },
    });
  });
  afterAll(async () => {
    await service.stop();
  });

  const member = (...options: string[]) => newMember(service, "limitless", ...options);

  /** The only record of the organization, once its request is over. */
  async function onlyRecord(organization: string): Promise<RequestReceipt> {
    const holds = async () =>
      (await (await service.fetch("/metrics", { key: null })).text()).match(/usage_holds (\d+)/)![1];
    await until(async () => (await holds()) === "0", 5_000, "no hold to be left");
    const records = await service.json<{ id: string }[]>("request", "list", "--org", organization);
    expect(records).toHaveLength(1);
    let receipt: RequestReceipt | null = null;
    // The note that the run went on without its client is written after the settlement.
    const isNoted = async () => {
      receipt = await service.json<RequestReceipt>("request", "show", records[0]!.id);
      return receipt.detached;
    };
    await until(isNoted, 5_000, "the receipt to say 'detached'");
    return receipt!;
  }

  const acts = {
    "its key is revoked": {
      act: ({ id }: { id: string }) => ["key", "revoke", id],
      code: "revoked_api_key",
    },
    "its organization is suspended": {
      act: ({ organization }: { organization: string }) => ["org", "suspend", organization],
      code: "organization_suspended",
    },
  };
  for (const [name, { act, code }] of Object.entries(acts)) {
    for (const stream of [true, false]) {
      test(`when ${name}, ${stream ? "a stream" : "a whole answer"}, with one record`, async () => {
        const leaver = await member();
        const asked = { directives: long, stream, repeat: crypto.randomUUID(), key: leaver.key };
        const run = await left(service, asked);
        await service.json(...act(leaver));
        await until(() => run.ended !== null, 2_000, "the engine to be let go");
        expect(run.ended).toBe("client-left");
        const receipt = await onlyRecord(leaver.organization);
        expect(receipt).toMatchObject({ outcome: "failed", error_code: code, recovered: false, stream });
        // An answer that was not streamed delivered nothing, so nothing is charged for it.
        expect(nanosOf(receipt.cost.charged) > 0).toBe(stream);
      });
    }
  }

  test("by a limit that is lowered, and a repeat reads how it ended", async () => {
    const limited = await member("--limit", "session=1");
    const asked = { directives: long, stream: true, repeat: crypto.randomUUID(), key: limited.key };
    const run = await left(service, asked);
    await service.json("limit", "set", "key", limited.id, "session=0.00000001");
    await until(() => run.ended !== null, 2_000, "the engine to be let go");
    expect(run.ended).toBe("client-left");
    expect(await onlyRecord(limited.organization)).toMatchObject({ outcome: "completed", stopped_by: "usage_window" });
    const before = service.engine.counts.requests;
    const again = await ask(service, asked);
    expect(await again.text()).toContain('"finish_reason":"length"');
    expect([again.status, service.engine.counts.requests]).toEqual([200, before]);
  });
});

test("is waited for by a drain, up to its deadline, and another node has its whole log or its failure", async () => {
  const database = await migratedDatabase();
  const folder = mkdtempSync(join(tmpdir(), "sluice-departed-"));
  const drain_ms = Math.round(3_000 * Math.min(busyness(), 2));
  const options = {
    limits: `{ drain_delay_ms: 0, drain_ms: ${drain_ms} }`,
    engine: { directives: "", namesModel: false },
    sluice: { store: "postgres", env: { DATABASE_URL: database.url } },
  } as const;
  const leaving = await startService(options);
  const soon = [true, false].map((stream) => ({ directives: "tokens=40 tps=40", stream, repeat: crypto.randomUUID() }));
  const late = { directives: long, stream: true, repeat: crypto.randomUUID() };
  const runs = await Promise.all([...soon, late].map((asked) => left(leaving, asked)));
  expect(runs.map(({ ended }) => ended)).toEqual([null, null, null]);
  leaving.signal("SIGTERM");
  const signalled_ms = performance.now();
  expect(await leaving.exited).toBe(0);
  expect(performance.now() - signalled_ms).toBeGreaterThan(drain_ms - 100);
  expect(runs).toMatchObject([
    { ended: "complete", tokens: 40 },
    { ended: "complete", tokens: 40 },
    { ended: "client-left" },
  ]);

  // With a given data folder, the second service creates no organization.
  const other = await startService({ ...options, sluice: { ...options.sluice, dataDir: folder } });
  const again = await Promise.all([...soon, late].map((asked) => ask(other, { ...asked, key: leaving.key })));
  const texts = await Promise.all(again.map((response) => response.text()));
  const ids = again.map(({ headers }) => headers.get("x-service-replay-of"));
  const receipts = await Promise.all(
    ids.map(async (id) => (await other.fetch(`/v1/service/requests/${id}`, { key: leaving.key })).json()),
  );
  expect(receipts).toMatchObject([
    { detached: true, outcome: "completed", usage: { output_tokens: 40 } },
    { detached: true, outcome: "completed", usage: { output_tokens: 40 } },
    { detached: true, outcome: "failed", error_code: "draining", recovered: false },
  ]);
  expect(other.engine.counts.requests).toBe(0);
  expect(texts[0]).toContain('"finish_reason":"stop"');
  expect(texts[0]).toEndWith("data: [DONE]\n\n");
  expect(JSON.parse(texts[1]!)).toMatchObject({ usage: { completion_tokens: 40 } });
  expect(texts[2]).toContain('"code":"draining"');
  await other.stop();
  await leaving.stop();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});
