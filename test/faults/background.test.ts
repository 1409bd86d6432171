/**
 * Runs many background responses at once on three nodes, one of which is killed. Each response ends in a final status,
 * which all nodes report alike; the ledger agrees with what the engines produced; and cancelling a response at another
 * node than its own stops it.
 */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { uuidOf } from "../../src/core/store/ids.ts";
import { tokens } from "../../src/features/simulator/text.ts";
import { busyness } from "../harness/busyness.ts";
import { seed, times } from "../harness/depth.ts";
import { until } from "../harness/until.ts";
import { textOf } from "./background-client.ts";
import { chanceOf } from "./chance.ts";
import { rigForFile } from "./file-rig.ts";
import { judge } from "./judge.ts";
import { openWithOutput, type Row, readBook } from "./ledger-book.ts";
import { active, checkpoint_s, made, model, type Node, post, price } from "./rig.ts";

setDefaultTimeout(600_000);

const count = times(30, 200);
const chance = chanceOf(seed);
/** This lease is longer than that of other crash tests, because 200 responses at once block a node for seconds. */
const lease_s = 6;
/** How long after its node's death a response may take to report that the node is gone: a lease and some sweeps. */
const ended_ms = 1000 * (lease_s * 3 + 30);

/** The most tokens that the last checkpoint may lack, at 100 tokens a second, if the checkpoint is a second late. */
const unpaid_max = 100 * (checkpoint_s + 1);

/** The time after which a client retries a request that was refused because the service is busy. */
const again_ms = 1_000;

/** The message of an allowed failure: a busy machine loses leases as short as these. */
const lostLease = /lost its connection to the usage store/;

interface Begun {
  id: string;
  requestId: string;
  key: string;
  node: Node;
  wanted: number;
  stream: boolean;
}

interface Now {
  status: string;
  error: { message: string } | null;
  usage: { output_tokens: number } | null;
  output: { content?: { text: string }[] }[];
}

const rig = rigForFile({ nodes: 3, plan: "{}", requests_max: 10_000, engines: 2, lease_s });
afterEach(async () => {
  for (const node of rig.nodes) if (!node.running) await node.start();
});

/** Starts a background response, perhaps with an idempotency key. */
function respond(node: Node, wanted: number, stream: boolean, key: string | null): Promise<Response> {
  const input = `[simulator: tps=100 tokens=${wanted}] ${wanted}`;
  const body = { model, stream, background: true, max_output_tokens: 16_000, input };
  return post(node, "/v1/responses", rig.key, body, { headers: key === null ? {} : { "idempotency-key": key } });
}
const cancel = (node: Node, { id }: Begun) => post(node, `/v1/responses/${id}/cancel`, rig.key, {});

async function begin(
  node: Node,
  wanted: number,
  key: string | null = null,
  stream = chance.next() < 0.5,
): Promise<Begun> {
  const ask = () => respond(node, wanted, stream, key);
  let response = await ask();
  // The stores of a busy machine may be slow, so a request that gets a 503 is retried.
  for (let time = 0; response.status === 503 && time < 20; time++) {
    await Bun.sleep(again_ms);
    response = await ask();
  }
  expect(response.status).toBe(200);
  let text = "";
  const reader = response.body!.getReader();
  while (!/"id":"resp_[0-9a-f]{32}"/.test(text)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`no response began: ${text}`);
    text += new TextDecoder().decode(value);
  }
  // The client disconnects as soon as it knows the ID, also in the middle of a stream.
  await reader.cancel();
  return {
    ...{ key: key ?? "", node, wanted, stream },
    id: /"id":"(resp_[0-9a-f]{32})"/.exec(text)![1]!,
    requestId: response.headers.get("x-service-request-id")!,
  };
}

async function now(node: Node, id: string): Promise<Now> {
  const headers = { authorization: `Bearer ${rig.key}` };
  return (await (await fetch(`${node.url}/v1/responses/${id}`, { headers })).json()) as Now;
}

const isOver = ({ status }: Now) => status !== "in_progress" && status !== "queued";

/** Waits until any running node reports that the response has ended, and returns that state. */
async function ended({ id }: Begun): Promise<Now> {
  const node = () => chance.pick(rig.nodes.filter(({ running }) => running));
  let last = await now(node(), id);
  const over = async () => {
    if (!isOver(last)) last = await now(node(), id);
    return isOver(last);
  };
  await until(over, ended_ms, `the end of ${id}`);
  return last;
}

async function rowsById(): Promise<Map<string, Row>> {
  const { rows } = await readBook(rig.postgres.port);
  const byId = new Map(rows.map((row) => [row.request_id, row]));
  expect(byId.size).toBe(rows.length);
  return byId;
}

/**
 * The kinds of these responses, streamed (`true`) or not, that have an open hold with checkpointed output in the
 * ledger.
 */
async function kindsInLedger(begun: readonly Begun[]): Promise<Set<boolean>> {
  const known = new Set((await openWithOutput(rig.postgres.port)).map(({ request_id }) => request_id));
  return new Set(begun.filter(({ requestId }) => known.has(uuidOf(requestId, "req_")!)).map(({ stream }) => stream));
}

const rowOf = (rows: Map<string, Row>, { requestId }: Begun) => rows.get(uuidOf(requestId, "req_")!)!;

test(`of ${count} at once, with one of three nodes killed, each has an end, and the books agree`, async () => {
  const before = made(rig);
  const dying = rig.nodes[0]!;
  const begun = await Promise.all(
    Array.from({ length: count }, (_, index) => {
      const node = rig.nodes[index % 3]!;
      // A slow machine takes seconds to start all responses. Those of the dying node are so long that they still run
      // then.
      const wanted = (node === dying ? 12_000 : 50) + chance.below(350);
      return begin(node, wanted, index % 4 === 0 ? `key ${index}` : null, index % 2 === 1);
    }),
  );
  const cancelled = begun.filter((_, index) => index % 10 === 5);
  const elsewhere = ({ node }: Begun) => rig.nodes.find((other) => other !== node && other.running)!;
  // Wait until most responses have some text, and the ledger has checkpoints of streamed and of unstreamed ones.
  await until(() => made(rig) > before + 40 * count, 30_000, "some tokens of each");
  const dyingOnes = begun.filter((one) => one.node === dying && one.key === "" && !cancelled.includes(one));
  const areKnown = async () => {
    for (let look = 0; look < 20; look++) {
      if ((await kindsInLedger(dyingOnes)).size === 2) return true;
      await Bun.sleep(100);
    }
    // A busy machine may lose such a short lease, and with it all responses of the node, so new ones are started.
    for (const stream of [true, false]) dyingOnes.push(await begin(dying, 12_000, null, stream));
    return false;
  };
  const first = dyingOnes.length;
  await until(areKnown, 60_000, "a checkpoint of both kinds");
  begun.push(...dyingOnes.slice(first));
  await dying.kill();
  await Promise.all(cancelled.map((one) => cancel(elsewhere(one), one)));
  const all = await Promise.all(begun.map(async (one) => ({ one, last: await ended(one) })));
  const { broken } = await judge(rig, [], { planChanges: [], forgotten: [] });
  const rows = await rowsById();
  /**
   * The kinds of responses of a dead node that were charged for their text: `true` for streamed ones, `false` for the
   * others.
   */
  const paid = new Set<boolean>();
  /** For each failed response of the dead node: whether its charge lacks at most `unpaid_max` tokens. */
  const inTime: boolean[] = [];
  for (const { one, last } of all) {
    const row = rowOf(rows, one);
    const what = `${one.id}: ${JSON.stringify(last.error)}`;
    const isFree = row.recovered && one.key !== "";
    if (!isFree && row.charged + row.uncharged !== row.input_tokens * price.input + row.output_tokens * price.output)
      broken.push(`${what}: ${row.charged} is not what its tokens cost`);
    if (last.status === "completed" && !row.recovered && last.usage?.output_tokens !== row.output_tokens)
      broken.push(`${what}: it says ${last.usage?.output_tokens} tokens, its record ${row.output_tokens}`);
    if (last.status === "completed" && last.usage?.output_tokens !== one.wanted)
      broken.push(`${what}: it has ${last.usage?.output_tokens} of ${one.wanted} tokens`);
    const isExplained = (one.node === dying && row.recovered) || lostLease.test(what);
    if (last.status === "failed" && !isExplained) broken.push(`${what}: it failed`);
    if (last.status === "failed" && row.recovered && one.key === "") {
      const text = tokens(textOf(last.output)).length;
      // The charge may lack the text after the last checkpoint, or all text if the node died before the response's
      // first checkpoint. It never exceeds the text.
      if (row.output_tokens > text)
        broken.push(`${what}: charged ${row.output_tokens}, but its text has ${text} tokens`);
      inTime.push(text <= row.output_tokens + unpaid_max * busyness());
      if (row.output_tokens > 0) paid.add(one.stream);
    }
    if (isFree && row.charged > 0) broken.push(`${what}: the repeat pays, and so did this`);
  }
  const statuses = new Set(all.map(({ last }) => last.status));
  expect({ seed, broken: broken.slice(0, 10) }).toEqual({ seed, broken: [] });
  expect([...statuses].filter((status) => !/^(cancelled|completed|failed)$/.test(status))).toEqual([]);
  expect(statuses).toContain("failed");
  expect(paid).toEqual(new Set([false, true]));
  // On a busy machine some checkpoints are late, so only half of the charges must be that exact.
  expect(inTime.filter(Boolean).length).toBeGreaterThan(inTime.length / 2);
});

test("of a node that is gone, the response of a key has failed, and the key begins another one", async () => {
  const [dying, other] = rig.nodes as [Node, Node, Node];
  const before = made(rig);
  const firsts = await Promise.all([false, true].map((stream) => begin(dying, 1_000, `gone ${stream}`, stream)));
  // Wait until the stored logs of both responses have their first tokens.
  await until(() => made(rig) > before + 200, 10_000, "some tokens");
  await dying.kill();
  const follow = async (first: Begun) => {
    const { stream, key } = first;
    // The next client with the key of a failed stream gets the same failure once; the client after that starts a new
    // response.
    if (stream) {
      const again = await respond(other, 1_000, stream, key);
      expect(again.headers.get("x-service-replay-of")).toBe(first.requestId);
      expect(await again.text()).toContain("node that wrote it is gone");
    }
    expect((await ended(first)).status).toBe("failed");
    const second = await begin(other, 1_000, key, stream);
    expect(second.id).not.toBe(first.id);
    const failed = await now(other, first.id);
    expect([failed.status, failed.error?.message]).toEqual(["failed", expect.stringContaining("node that wrote it")]);
    expect((await now(other, second.id)).status).toBe("in_progress");
    await cancel(other, second);
    await until(async () => (await rowsById()).has(uuidOf(first.requestId, "req_")!), ended_ms, "its record");
    expect(rowOf(await rowsById(), first)).toMatchObject({ recovered: true, charged: 0 });
  };
  await Promise.all(firsts.map(follow));
  await dying.start();
});

test("one that is cancelled at another node is let go within a second or two, and what was produced is charged", async () => {
  const [own, other] = rig.nodes as [Node, Node, Node];
  await until(() => active(rig) === 0, 20_000, "the engines to be idle");
  const before = made(rig);
  const one = await begin(own, 4_000, null, true);
  await until(() => active(rig) === 1, 10_000, "its engine to be asked");
  await until(() => made(rig) > before + 100, 10_000, "some tokens");
  const response = await cancel(other, one);
  expect(((await response.json()) as Now).status).toBe("cancelled");
  await until(() => active(rig) === 0, 3_000, "its engine to be let go");
  for (const node of rig.nodes) expect((await now(node, one.id)).status).toBe("cancelled");
  await until(async () => (await rowsById()).has(uuidOf(one.requestId, "req_")!), 10_000, "its record");
  const row = rowOf(await rowsById(), one);
  expect(row).toMatchObject({ outcome: "cancelled" });
  expect(row.output_tokens).toBeGreaterThan(20);
});
