/**
 * A streamed background response is stored, and its node is killed before the end of its log and before its charge. A
 * repeat at another node, well before the lease of the first has lapsed, does not get the error that a paid answer is
 * lost.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keptAnswers } from "../../src/stores/postgres/kept.ts";
import { serverDatabase } from "../../src/stores/postgres/server.ts";
import { inferenceBodies, model, type Service, startService } from "../harness/engine.ts";
import { migratedDatabase } from "../harness/migrated-database.ts";
import { dollars } from "../harness/money.ts";
import { endedReceipt } from "../harness/receipts.ts";

setDefaultTimeout(90_000);

const path = "/v1/responses";
/** A lease of more than the 10 s for which a log may be without its end. */
const metering = "{ lease_s: 15, checkpoint_s: 0.3, sweep_s: 0.3 }";

async function killed({ signal, exited, engine }: Service): Promise<void> {
  signal("SIGKILL");
  await exited;
  await engine.stop();
}

test("a repeat reads the failure once the lease has lapsed, and then the key is free", async () => {
  await using stack = new AsyncDisposableStack();
  const database = await migratedDatabase();
  stack.defer(() => database.drop());
  const folder = mkdtempSync(join(tmpdir(), "sluice-stored-"));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const sluice = { store: "postgres", env: { DATABASE_URL: database.url } } as const;
  const options = { metering, engine: { directives: "", namesModel: false } } as const;
  const first = await startService({ ...options, sluice });
  stack.defer(() => killed(first));
  const second = await startService({ ...options, sluice: { ...sluice, dataDir: folder } });
  stack.defer(() => killed(second));
  const ask = (node: Service) => {
    const body = { model, ...inferenceBodies[path]!("tokens=400 tps=20"), stream: true, background: true };
    return node.post(path, body, { key: first.key, headers: { "idempotency-key": "stored" } });
  };

  const answer = await ask(first);
  const id = answer.headers.get("x-service-request-id")!;
  const reader = answer.body!.getReader();
  for (let text = ""; !text.includes(" You"); ) text += new TextDecoder().decode((await reader.read()).value);
  void reader.read().catch(() => {});
  await killed(first);
  // Stores the response as if the node had done so in its last instant.
  const db = await serverDatabase(database.url);
  const answers = keptAnswers(db, { kept_hours: () => 24 });
  const response = JSON.stringify({ ...JSON.parse((await answers.find(id))!.response!), status: "completed" });
  expect(await answers.end(id, { state: "ended", bytes: 1, response })).toBeTrue();
  await db.close();

  const repeat = await ask(second);
  expect([repeat.status, repeat.headers.get("x-service-replay-of")]).toEqual([200, id]);
  const text = await repeat.text();
  expect(text).not.toContain("idempotency-key");
  expect(text).toContain("node that wrote it is gone");
  const receipt = await endedReceipt(second, id, { key: first.key });
  expect(receipt).toMatchObject({ recovered: true, cost: { charged: dollars(0) } });
  const anew = await ask(second);
  expect([anew.status, anew.headers.get("x-service-replay-of")]).toEqual([200, null]);
});
