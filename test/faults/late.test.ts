/**
 * A node that is cut off from Postgres alone goes on forwarding until its lease is over, so it delivers more than its
 * last checkpoint says. When it is connected again, the ledger gets all that it delivered.
 */
import { expect, test } from "bun:test";
import { uuidOf } from "../../src/core/store/ids.ts";
import { until } from "../harness/until.ts";
import { rigForFile } from "./file-rig.ts";
import { readBook } from "./ledger-book.ts";
import { protocols } from "./protocols.ts";
import { lease_s, model, type Node, post, price } from "./rig.ts";

const rig = rigForFile({ nodes: 2, plan: "{}", requests_max: 1000 });

interface Stream {
  id: string;
  tokens: number;
  isOver: boolean;
}

/** Starts a stream in one of the protocols, and counts the tokens that its client receives. */
async function streamed(node: Node, { path, body, token }: (typeof protocols)[number]): Promise<Stream> {
  const asked = { model, stream: true, ...body("[simulator: tps=50 tokens=3000]") };
  const response = await post(node, path, rig.key, asked);
  expect(response.status).toBe(200);
  const id = uuidOf(response.headers.get("x-service-request-id")!, "req_")!;
  const stream = { id, tokens: 0, isOver: false };
  void (async () => {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of response.body!) {
      const frames = (text + decoder.decode(chunk, { stream: true })).split("\n\n");
      text = frames.pop()!;
      stream.tokens += frames.filter((frame) => token.test(frame)).length;
    }
  })().finally(() => {
    stream.isOver = true;
  });
  return stream;
}

const rowsOf = async (streams: readonly Stream[]) => {
  const { rows } = await readBook(rig.postgres.port);
  return streams.flatMap(({ id }) => rows.find(({ request_id }) => request_id === id) ?? []);
};

test("what a node that was cut off for longer than its lease had delivered is charged when it is back, once", async () => {
  const [, node] = rig.nodes as [Node, Node];
  const streams = await Promise.all(protocols.map((protocol) => streamed(node, protocol)));
  await until(() => streams.every(({ tokens }) => tokens > 30), 10_000, "tokens and a checkpoint");
  node.database.cut();
  const wait_ms = 1000 * (lease_s * 3 + 20);
  await until(() => streams.every(({ isOver }) => isOver), wait_ms, "the node to end them");
  const areRecovered = async () => {
    const rows = await rowsOf(streams);
    return rows.length === 3 && rows.every(({ recovered }) => recovered);
  };
  await until(areRecovered, wait_ms, "the other node to settle them");
  const recovered = await rowsOf(streams);
  // Each client got more tokens than the recovery charged; the difference is larger than two checkpoints' tokens.
  for (const [at, { tokens }] of streams.entries()) expect(tokens - recovered[at]!.output_tokens).toBeGreaterThan(20);
  node.database.mend();
  await until(
    async () => (await rowsOf(streams)).every(({ is_late }) => is_late),
    wait_ms,
    "what they lack to be booked",
  );
  const most = Math.max(...rig.engines[0]!.engine.requests.map(({ tokens }) => tokens));
  for (const [at, row] of (await rowsOf(streams)).entries()) {
    expect(row.output_tokens).toBeGreaterThanOrEqual(streams[at]!.tokens);
    expect(row.output_tokens).toBeLessThanOrEqual(most);
    expect([row.charged, row.uncharged]).toEqual([
      row.input_tokens * price.input + row.output_tokens * price.output,
      0,
    ]);
  }
  const { windows } = await readBook(rig.postgres.port);
  for (const { used, charged, held } of windows) expect([used, held]).toEqual([charged, 0]);
  expect(await rig.command<unknown[]>("usage", "check", "--full")).toEqual([]);
}, 120_000);
