/** Calibrations, which a service learns from its engines' reports, survive a restart, on both kinds of database. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { newMember } from "../../harness/organizations.ts";
import { startSluice } from "../../harness/sluice.ts";
import { temporaryFolder } from "../../stores/postgres/databases.ts";

setDefaultTimeout(90_000);

const model = "z-ai/glm-4.6";
// The text has three bytes per letter, far from the usual length of a token.
const text = "每天早上园丁数她的郁金香，写下数字。".repeat(200);
const ask = { model, messages: [{ role: "user", content: text }] };

async function afterRestart(env: Record<string, string>): Promise<void> {
  const folder = temporaryFolder();
  try {
    // `env` selects the store. The folder is used only by the embedded database.
    const start = () => startSluice({ dataDir: join(folder, "data"), env, store: "pglite" });
    const first = await start();
    const key = first.key || (await newMember(first, "unlimited")).key;
    const counted = async ({ post }: typeof first) => {
      const answer = await (await post("/v1/messages/count_tokens", ask, { key })).json();
      return (answer as { input_tokens: number }).input_tokens;
    };
    const ignorant = await counted(first);
    for (let round = 0; round < 3; round++)
      expect((await first.post("/v1/messages", { ...ask, max_tokens: 8 }, { key })).status).toBe(200);
    const taught = await counted(first);
    expect(taught).toBeLessThan(ignorant / 2);
    await first.stop();
    const second = await start();
    expect(await counted(second)).toBe(taught);
    await second.stop();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("a service that starts again on the same embedded database counts as before", () => afterRestart({}));

test("a service that starts again on the same Postgres counts as before", async () => {
  const { url, drop } = await migratedDatabase();
  await afterRestart({ DATABASE_URL: url }).finally(drop);
});
