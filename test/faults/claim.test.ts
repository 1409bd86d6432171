/**
 * A node that dies between the claim of an idempotency key and the grant of a hold has started nothing: the next client
 * with that key waits some seconds, and then its own request runs.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../harness/until.ts";
import { rigForFile } from "./file-rig.ts";
import { model, type Node, post } from "./rig.ts";
import { ask } from "./stores.ts";

setDefaultTimeout(120_000);

/** The longest that the next client may wait, in milliseconds, with a few seconds added for a busy machine. */
const waits_ms_max = 14_000;

const rig = rigForFile({ nodes: 2, plan: "{}", requests_max: 100 });

const claim = (node: Node, key: string, background: boolean) => {
  const body = { model, background, input: "[simulator: tps=500 tokens=5] hello" };
  return post(node, "/v1/responses", rig.key, body, { headers: { "idempotency-key": key } });
};

/** Does the work while no hold can be granted, and at the end terminates the statements that still wait for a grant. */
async function withoutGrants(work: () => Promise<void>): Promise<void> {
  await ask(rig.postgres.port, (db) =>
    db.transaction(
      async (tx) => {
        await tx.query("lock table usage_hold in access exclusive mode");
        await work();
        await tx.query("select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'");
      },
      { statement_ms: 60_000 },
    ),
  );
}

const claims = () =>
  ask(
    rig.postgres.port,
    async (db) => (await db.query<{ count: number }>("select count(*) from kept_answer"))[0]!.count,
  );

const waitsForGrant = () =>
  ask(
    rig.postgres.port,
    async (db) => (await db.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'")).length > 0,
  );

test("its key is free within seconds, of a background response too", async () => {
  const [dying, other] = rig.nodes as [Node, Node];
  const both = [false, true];
  const ask = (node: Node, background: boolean) => claim(node, `claimed ${background}`, background);
  await withoutGrants(async () => {
    const first = both.map((background) => ask(dying, background).catch(() => null));
    await until(async () => (await claims()) === 2 && (await waitsForGrant()), 10_000, "claims without a grant");
    await dying.kill();
    await Promise.all(first);
  });
  const began_ms = performance.now();
  const followed = both.map(async (background) => {
    const again = await ask(other, background);
    expect(performance.now() - began_ms).toBeLessThan(waits_ms_max);
    expect([again.status, again.headers.get("x-service-replay-of")]).toEqual([200, null]);
    await again.text();
  });
  await Promise.all(followed);
});
