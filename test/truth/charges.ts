/**
 * Sends requests to a node in front of the truth engine, for every row of the table and every way in which a response
 * can end, and records each charge beside the true cost.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { priceOf } from "../../src/core/inference/money.ts";
import type { RequestReceipt } from "../../src/features/receipts/receipt-shape.ts";
import { corpus } from "../features/tokenizers/corpus.ts";
import counts from "../features/tokenizers/counts.json" with { type: "json" };
import { inMoney } from "../harness/engine.ts";
import { nanosOf } from "../harness/money.ts";
import { startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { temporaryFolder } from "../stores/postgres/databases.ts";
import { temperatures, truthEngine, truthOf } from "./engine.ts";
import type { Row } from "./rows.ts";

export const ends = [
  "whole",
  "streamed",
  "left early",
  "broken",
  "at a window",
  "whole, left",
  "whole, broken",
  /** This end comes last, because the test kills the node for it. */
  "recovered",
] as const;
export type End = (typeof ends)[number];

export interface Cell {
  row: string;
  end: End;
  isReported: boolean;
  charged: number;
  truth: number;
  receipt: RequestReceipt;
}

const { name: promptName, ...prompt } = corpus.find(({ name }) => name === "an agent at work")!;
const promptTokens = counts[promptName as keyof typeof counts].o200k_harmony;
const prices = { input: 100_000, cachedInput: 10_000, cacheWrite: 125_000, output: 400_000 };
/** A session limit (five-hour window) that fits the prompt and some thousand output tokens. */
const session_nanos = promptTokens * 125 + 1_500 * 400;

function configTo(url: string, rows: readonly Row[]): string {
  const upstream = (_: Row, at: number) => `  row${at}: { url: "${url}/row${at}/v1", protocol: openai-chat }`;
  const entry = (_: Row, at: number) => `  - id: acme/row${at}
    owned_by: acme
    created: 1790000000
    context_window: 131072
    max_output_tokens: 16384
    capabilities: [tools, parallel_tools, reasoning]
    tokenizer: o200k_harmony
    prices: { input: ${prices.input / 1e6}, cached_input: ${prices.cachedInput / 1e6}, cache_write: ${prices.cacheWrite / 1e6}, output: ${prices.output / 1e6} }
    routes: [{ upstream: row${at}, model: m, priority: 0, weight: 1 }]`;
  return `upstreams:
${rows.map(upstream).join("\n")}
models:
${rows.map(entry).join("\n")}
plans:
  pro: {}
  small: ${inMoney(`{ session: ${session_nanos} }`)}
metering: { currency: USD, lease_s: 2, checkpoint_s: 0.1, sweep_s: 0.2 }
`;
}

export async function charges(rows: readonly Row[], wanted: readonly End[] = ends): Promise<Cell[]> {
  const folder = temporaryFolder();
  const engine = truthEngine(rows, promptTokens);
  const start = () =>
    startSluice({ config: configTo(engine.url, rows), dataDir: join(folder, "data"), store: "pglite" });
  let service = await start();
  const { key } = service;
  const cells: Cell[] = [];

  const bodyOf = (at: number, how: keyof typeof temperatures, stream: boolean) => ({
    ...prompt,
    model: `acme/row${at}`,
    max_tokens: stream ? 16_000 : 512,
    temperature: temperatures[how],
    stream,
  });

  async function receiptOf(id: string, own = key): Promise<RequestReceipt> {
    let receipt = null as RequestReceipt | null;
    let status = 0;
    const isSettled = async () => {
      const response = await service.fetch(`/v1/service/requests/${id}`, { key: own });
      status = response.status;
      receipt = status === 200 ? ((await response.json()) as RequestReceipt) : null;
      return receipt !== null && receipt.outcome !== "running";
    };
    await until(isSettled, 20_000, `the record of ${id}`).catch((late) => {
      throw new Error(`${status} ${JSON.stringify(receipt)}`, { cause: late });
    });
    return receipt!;
  }

  function add(row: Row, end: End, receipt: RequestReceipt, produced: number | null): void {
    const isReported = receipt.usage.source === "reported";
    // Without a report, the service cannot know how many tokens were cached, and does not charge reasoning that was not
    // shown.
    const known = row.isRunning || isReported ? row : { ...row, cached: 0, written: 0, hidden: 0 };
    const shown = isReported || produced === null ? produced : produced - row.hidden;
    const truth = shown === null ? 0 : priceOf(truthOf(known, promptTokens, shown), prices);
    cells.push({ row: row.name, end, isReported, charged: nanosOf(receipt.cost.charged), truth, receipt });
  }

  const idOf = (response: Response) => response.headers.get("x-service-request-id")!;

  async function read(at: number, how: keyof typeof temperatures, stream: boolean, own = key): Promise<RequestReceipt> {
    const response = await service.post("/v1/messages", bodyOf(at, how, stream), { key: own });
    await response.text();
    return receiptOf(idOf(response), own);
  }

  /** Reads until the client has received everything that the engine sends before it hangs. */
  async function readToTheHang(row: Row, at: number, leaving: AbortSignal): Promise<string> {
    const response = await service.post("/v1/messages", bodyOf(at, "hangs", true), { key, signal: leaving });
    const deltas = engine.deltas(row, "hangs");
    let seen = "";
    const decoder = new TextDecoder();
    const reader = response.body!.getReader();
    while (seen.split('content_block_delta"').length - 1 < deltas) {
      const { done, value } = await reader.read();
      if (done) throw new Error(`the stream ended: ${seen.slice(-500)}`);
      seen += decoder.decode(value, { stream: true });
    }
    return idOf(response);
  }

  try {
    // The first responses are not counted exactly, because the tokenizer's vocabulary is not loaded yet. So the test
    // waits until one is counted.
    const silent = rows.findIndex(({ report }) => report === null);
    const isCounted = async () => (await read(silent, "complete", true)).usage.source === "counted";
    if (silent >= 0) await until(isCounted, 60_000, "the vocabulary");
    for (const end of ends.filter((one) => wanted.includes(one) && one !== "recovered" && one !== "whole, left"))
      await Promise.all(rows.map((row, at) => tryEnd(row, at, end)));
    // Only the log shows which record belongs to which of these requests, so they run one after another.
    if (wanted.includes("whole, left")) for (const [at, row] of rows.entries()) await tryEnd(row, at, "whole, left");
    if (wanted.includes("recovered")) await recovered();
  } finally {
    await engine.stop();
    await service.stop().catch(() => {});
    rmSync(folder, { recursive: true, force: true });
  }
  return cells;

  async function tryEnd(row: Row, at: number, end: End): Promise<void> {
    const complete = engine.produced(row, "complete");
    if (end === "whole") add(row, end, await read(at, "complete", false), complete);
    else if (end === "streamed") add(row, end, await read(at, "complete", true), complete);
    else if (end === "broken") add(row, end, await read(at, "breaks", true), engine.produced(row, "breaks"));
    else if (end === "whole, broken") add(row, end, await read(at, "breaks", false), null);
    else if (end === "whole, left") add(row, end, await leftWhole(at), complete);
    else if (end === "left early") add(row, end, await leftEarly(row, at), engine.produced(row, "hangs"));
    else await atWindow(row, at);
  }

  async function leftEarly(row: Row, at: number): Promise<RequestReceipt> {
    const leaving = new AbortController();
    const id = await readToTheHang(row, at, leaving.signal);
    leaving.abort();
    return receiptOf(id);
  }

  async function leftWhole(at: number): Promise<RequestReceipt> {
    const leaving = new AbortController();
    const logged = service.stderr().length;
    const before = engine.asked;
    const asked = service
      .post("/v1/messages", bodyOf(at, "hangs", false), { key, signal: leaving.signal })
      .catch(() => null);
    await until(() => engine.asked > before, 5_000, "the engine to be asked");
    leaving.abort();
    await asked;
    let id = "";
    await until(
      () => {
        id = cancelledIn(service.stderr().slice(logged), `acme/row${at}`);
        return id !== "";
      },
      12_000,
      "the line of the log",
    );
    return receiptOf(id);
  }

  async function atWindow(row: Row, at: number): Promise<void> {
    const slug = `small-${at}`;
    await service.json("org", "create", slug, "--plan", "small");
    const { key: own } = await service.json<{ key: string }>("key", "create", "--org", slug, "--name", "test");
    const response = await service.post("/v1/messages", bodyOf(at, "endless", true), { key: own });
    const seen = await response.text();
    const deltas = seen.split('content_block_delta"').length - 1;
    const isCall = row.parts === "reasoning and a call";
    const receipt = await receiptOf(idOf(response), own);
    add(row, "at a window", receipt, engine.producedAfter(row, deltas + (isCall && seen.includes("tool_use") ? 1 : 0)));
  }

  /** Waits until the ledger has a checkpoint with nearly all tokens that were forwarded. */
  async function checkpointed(id: string, produced: number): Promise<void> {
    const isKnown = async () => {
      const { usage } = (await (await service.fetch(`/v1/service/requests/${id}`, { key })).json()) as RequestReceipt;
      return usage.output_tokens >= produced * 0.95;
    };
    await until(isKnown, 10_000, `a checkpoint of ${id}`);
  }

  async function recovered(): Promise<void> {
    const never = new AbortController();
    const ids = await Promise.all(rows.map((row, at) => readToTheHang(row, at, never.signal)));
    for (const [at, row] of rows.entries()) await checkpointed(ids[at]!, engine.produced(row, "hangs") - row.hidden);
    service.signal("SIGKILL");
    await service.exited;
    service = await start();
    for (const [at, row] of rows.entries())
      add(row, "recovered", await receiptOf(ids[at]!), engine.produced(row, "hangs"));
  }
}

/** The ID of the unstreamed request to this model whose caller left; "" until the log has it. */
function cancelledIn(log: string, model: string): string {
  const line = log
    .split("\n")
    .find((one) =>
      ['"outcome":"cancelled"', '"stream":false', `"model":"${model}"`].every((word) => one.includes(word)),
    );
  return /"request_id":"(req_\w+)"/.exec(line ?? "")?.[1] ?? "";
}
