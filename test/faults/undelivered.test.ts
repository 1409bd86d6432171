/**
 * An unstreamed response is delivered when it is complete. If its node dies before that, or the database stays down
 * past the lease, it costs nothing, in each protocol. A stream is charged as far as it was delivered.
 */
import { expect, test } from "bun:test";
import { tokens } from "../../src/features/simulator/text.ts";
import { until } from "../harness/until.ts";
import { textOf } from "./background-client.ts";
import { rigForFile } from "./file-rig.ts";
import { openWithOutput, type Row, readBook } from "./ledger-book.ts";
import { protocols } from "./protocols.ts";
import { active, lease_s, made, model, type Node, post } from "./rig.ts";
import { ask } from "./stores.ts";

const rig = rigForFile({ nodes: 2, plan: "{}", requests_max: 1000, engines: 2 });

const directives = "[simulator: tps=50 tokens=3000]";
const asked = (node: Node, stream: boolean) =>
  protocols.map(async ({ path, body }) => {
    const response = await post(node, path, rig.key, { model, stream, ...body(directives) });
    return { status: response.status, text: await response.text() };
  });

/** Waits for `count` records that `before` does not have, and returns them. */
async function recordsThen(before: readonly Row[], count: number): Promise<Row[]> {
  const known = new Set(before.map(({ request_id }) => request_id));
  let rows: Row[] = [];
  const settled = async () => {
    rows = (await readBook(rig.postgres.port)).rows.filter(({ request_id }) => !known.has(request_id));
    return rows.length >= count;
  };
  await until(settled, 1000 * (lease_s * 3 + 20), `${count} records`);
  return rows;
}

/** The number of open streams whose output the ledger knows from a checkpoint. */
const checkpointedStreams = async () => (await openWithOutput(rig.postgres.port)).filter(({ stream }) => stream).length;

test("a node that dies", async () => {
  const { rows } = await readBook(rig.postgres.port);
  const [dying] = rig.nodes as [Node, Node];
  const asking = [...asked(dying, false), ...asked(dying, true)].map((answer) => answer.catch(() => null));
  await until(() => active(rig) === 6, 10_000, "all to be asked of an engine");
  await until(async () => (await checkpointedStreams()) === 3, 20_000, "a checkpoint of each stream");
  await dying.kill();
  await Promise.all(asking);
  // The node is started again even if this test fails, because later tests need it.
  await dying.start();
  const records = await recordsThen(rows, 6);
  for (const { stream, output_tokens, input_tokens, charged, uncharged, recovered } of records) {
    expect(recovered).toBe(true);
    if (stream) expect(charged).toBeGreaterThan(0);
    else expect([output_tokens, input_tokens, charged, uncharged]).toEqual([0, 0, 0, 0]);
  }
  expect(records.filter(({ stream }) => stream)).toHaveLength(3);
}, 90_000);

test("a database that stays away past the lease: the caller reads 503, and no other engine is asked", async () => {
  const { rows } = await readBook(rig.postgres.port);
  const before = rig.engines.map(({ engine }) => engine.counts.requests);
  const asking = asked(rig.nodes[1]!, false);
  await until(() => active(rig) === 3, 10_000, "all to be asked of an engine");
  await rig.postgres.kill();
  for (const { status, text } of await Promise.all(asking)) {
    expect(status).toBe(503);
    expect(text).toContain("storage_unavailable");
  }
  await until(() => active(rig) === 0, 3_000, "the engines to be let go");
  await rig.postgres.start();
  for (const record of await recordsThen(rows, 3))
    expect(record).toMatchObject({ outcome: "failed", output_tokens: 0, input_tokens: 0, charged: 0, uncharged: 0 });
  const more = rig.engines.map(({ engine }, index) => engine.counts.requests - before[index]!);
  expect(more[0]! + more[1]!).toBe(3);
}, 90_000);

test("a background response whose beginning a failover has forgotten can be read as far as it is charged", async () => {
  const { rows } = await readBook(rig.postgres.port);
  const [node, other] = rig.nodes as [Node, Node];
  const response = await post(node, "/v1/responses", rig.key, { model, input: directives, background: true });
  expect(response.status).toBe(200);
  const { id } = (await response.json()) as { id: string };
  await until(() => active(rig) === 1, 10_000, "an engine to be asked");
  const begun = made(rig);
  await until(() => made(rig) > begun + 60, 10_000, "a text");
  await ask(rig.postgres.port, (db) => db.exec("update kept_answer set response_id = null, response = null"));
  for (const { front } of rig.engines) front.cut();
  const [record] = await recordsThen(rows, 1);
  expect(record).toMatchObject({ outcome: "failed", is_background: true });
  const answer = await fetch(`${other.url}/v1/responses/${id}`, { headers: { authorization: `Bearer ${rig.key}` } });
  const read = (await answer.json()) as { status: string; output: Parameters<typeof textOf>[0] };
  expect(read.status).toBe("failed");
  expect(tokens(textOf(read.output)).length).toBe(record!.output_tokens);
}, 90_000);
