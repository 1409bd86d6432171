// Connection poolers: with transaction pooling, a node refuses to start and says why; with session pooling, everything
// works.

import { expect, setDefaultTimeout, test } from "bun:test";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { whyNoSessions } from "../../../src/stores/postgres/sessions.ts";
import { type PoolerOptions, startPooler } from "../../harness/pooler.ts";
import { freshDatabase } from "../../harness/services.ts";
import { program, startSluice } from "../../harness/sluice.ts";
import { chat } from "./served.ts";

setDefaultTimeout(120_000);

async function behind(options: PoolerOptions, work: (url: string) => Promise<void>): Promise<void> {
  const fresh = await freshDatabase();
  const pooler = await startPooler(fresh.url, options);
  try {
    await work(pooler.url);
  } finally {
    await pooler.stop();
    await fresh.drop();
  }
}

const node = (url: string) => startSluice({ store: "pglite", env: { DATABASE_URL: url } });

test("a node refuses to start behind a pooler of transactions", async () => {
  await behind({ mode: "transaction", sessions_max: 20 }, async (url) => {
    await expect(node(url)).rejects.toThrow("pool_mode = session");
  });
});

for (const sessions_max of [1, 20]) {
  test(`a pooler of statements is called one, at start and by the doctor: ${sessions_max} sessions`, async () => {
    await behind({ mode: "statement", sessions_max }, async (url) => {
      const db = await serverDatabase(url);
      try {
        expect(await whyNoSessions(db)).toContain("pool_mode = statement");
      } finally {
        await db.close();
      }
      if (sessions_max === 1) return;
      await expect(node(url)).rejects.toThrow("pool_mode = statement");
      const env = { ...process.env, DATABASE_URL: url };
      const doctor = Bun.spawn([...program, "doctor", "--json"], { env, stderr: "ignore" });
      const findings = (await new Response(doctor.stdout).json()) as { check: string; status: string; says: string }[];
      const found = findings.find(({ check }) => check === "database");
      expect(found).toMatchObject({ status: "problem", says: expect.stringContaining("pool_mode = statement") });
    });
  });
}

for (const sessions_max of [1, 2, 20]) {
  for (const isRoundRobin of [false, true]) {
    const name = `${sessions_max} sessions, ${isRoundRobin ? "the longest" : "the last"} free one first`;
    test(`a pooler of transactions is recognised: ${name}`, async () => {
      await behind({ mode: "transaction", sessions_max, isRoundRobin }, async (url) => {
        const db = await serverDatabase(url);
        try {
          // Other queries have used the pooler before, so that it has several idle sessions.
          await Promise.all(Array.from({ length: 5 }, () => db.query("select pg_sleep(0.05)")));
          expect(await whyNoSessions(db)).toContain("pooler");
        } finally {
          await db.close();
        }
      });
    });
  }
}

test("behind a pooler of sessions a node serves, and its sessions have their settings", async () => {
  await behind({ mode: "session", sessions_max: 40 }, async (url) => {
    const sluice = await node(url);
    try {
      expect((await chat(sluice)).status).toBe(200);
    } finally {
      expect(await sluice.stop()).toBe(0);
    }
    const db = await serverDatabase(url, { statement_ms: 12_345 });
    const lane = await db.lane({ synchronous_commit: "off" });
    const [row] = await lane.query(
      "select current_setting('statement_timeout') as timeout, current_setting('synchronous_commit') as commit",
    );
    expect(row).toEqual({ timeout: "12345ms", commit: "off" });
    await db.close();
  });
});

test("a server without a pooler is left alone", async () => {
  const fresh = await freshDatabase();
  const db = await serverDatabase(fresh.url);
  expect(await whyNoSessions(db)).toBeNull();
  await db.close();
  await fresh.drop();
});
