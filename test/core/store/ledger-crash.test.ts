// A kill -9 of Postgres, or of a process with its embedded database, loses nothing that the ledger has confirmed. A
// batch itself commits without waiting for the disk, and is confirmed only after the barrier, a tiny transaction that
// does wait.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { migrate } from "../../../db/migrate.ts";
import type { Admit, Command, LedgerAnswer } from "../../../src/core/store/ledger.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { embeddedDatabase } from "../../../src/stores/postgres/embedded.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { type Service, startPostgres } from "../../harness/services.ts";
import { admitOf, newHex, settleOf } from "./ledger-stores.ts";

let server: Service;
let db: Database;
beforeAll(async () => {
  server = await startPostgres();
  db = await serverDatabase(server.url);
  await migrate(db);
}, 60_000);
afterAll(async () => {
  await db.close();
  await server.stop();
}, 30_000);

/** kill -9 of one backend: Postgres ends all others at once, forgets its shared memory, and recovers from its log. */
async function killPostgres(): Promise<void> {
  const victim = postgres(server.url, { max: 1, onnotice: () => {} });
  const [row] = await victim`select pg_backend_pid() as pid`;
  process.kill(row!.pid, "SIGKILL");
  await victim.end({ timeout: 0 });
}

/** Retries, because each connection that died with the server fails once. */
async function insist<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 20_000;
  while (true) {
    try {
      return await ask();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await Bun.sleep(20);
    }
  }
}

/**
 * Checks that every granted request is in the database as a hold or a record, and every settled one as a record, each
 * only once.
 */
async function assertThere(database: Database, granted: string[], settled: string[]): Promise<void> {
  const there = await insist(() =>
    database.query<{ id: string; ended: boolean }>(
      `select replace(request_id::text, '-', '') as id, true as ended from usage_record
       union all select replace(request_id::text, '-', ''), false from usage_hold`,
    ),
  );
  const records = new Set(there.filter((one) => one.ended).map((one) => `req_${one.id}`));
  const all = new Set(there.map((one) => `req_${one.id}`));
  expect(all.size).toBe(there.length);
  expect(granted.filter((id) => !all.has(id))).toEqual([]);
  expect(settled.filter((id) => !records.has(id))).toEqual([]);
}

test("no grant and no record that was confirmed is missing after Postgres was killed, and nothing counts twice", async () => {
  const [row] = await db.query<{ id: string }>(
    "insert into organization (id, slug, name, anchor_at) values (gen_random_uuid(), 'crash', 'Crash', '2026-01-31') returning id::text",
  );
  const organization = `org_${row!.id.replaceAll("-", "")}`;
  const book = ledger(db, { recovery: "checkpoint", answer_ms: 2_000 });
  const granted = new Set<string>();
  const settled = new Set<string>();

  const confirmed = (commands: Command[]): Promise<LedgerAnswer[]> => insist(() => book.run(commands));
  for (let round = 0; round < 4; round++) {
    let running = true;
    const stream = async () => {
      let before: Admit[] = [];
      while (running) {
        const admits = Array.from({ length: 4 }, () => admitOf(organization));
        await confirmed([...admits, ...before.map((one) => settleOf(one, 7))]);
        for (const one of admits) granted.add(one.requestId);
        for (const one of before) settled.add(one.requestId);
        before = admits;
      }
    };
    const streams = [stream(), stream(), stream()];
    await Bun.sleep(150 + Math.random() * 100);
    await killPostgres();
    running = false;
    // Confirmed requests must be in the database without any retry, so this check comes before anything is sent again.
    const [sure, ended] = [[...granted], [...settled]];
    await assertThere(db, sure, ended);
    await Promise.all(streams);
    expect(await insist(() => book.check())).toEqual([]);
  }
  expect(settled.size).toBeGreaterThan(50);
  await book.close();
}, 60_000);

test("nor after the process with the embedded database was killed, again and again on the same folder", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-ledger-crash-"));
  const organization = `org_${newHex()}`;
  const granted: string[] = [];
  const settled: string[] = [];
  for (let round = 0; round < 2; round++) {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "ledger-child.ts"), folder, organization], {
      stdout: "pipe",
      stderr: "inherit",
    });
    let text = "";
    let killed = false;
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      if (killed || text.split("\n").length < 20 + Math.random() * 40) continue;
      killed = true;
      child.kill("SIGKILL");
    }
    await child.exited;
    for (const line of text.split("\n").slice(0, -1)) {
      const said = JSON.parse(line) as { granted: string[]; settled: string[] };
      granted.push(...said.granted);
      settled.push(...said.settled);
    }
    const again = await embeddedDatabase(folder);
    await assertThere(again, granted, settled);
    expect(await ledger(again, { recovery: "checkpoint" }).check()).toEqual([]);
    await again.close();
  }
  expect(settled.length).toBeGreaterThan(100);
  rmSync(folder, { recursive: true, force: true });
}, 60_000);
