/** Clients that leave when the engine has their request, and the receipts of the answers that they left. */
import { expect } from "bun:test";
import type { RequestReceipt } from "../../../src/core/operations/receipt-shape.ts";
import { model, type Service } from "../../harness/engine.ts";
import { endedReceipt } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

/** Asks for an answer that is not streamed, and leaves when the engine has the request. */
export async function leftAt(
  of: Service,
  path: string,
  body: (directives: string) => object,
  { directives, key = of.key }: { directives: string; key?: string | undefined },
) {
  const leaving = new AbortController();
  const marker = `marker-${crypto.randomUUID()}`;
  const asking = { model, ...body(`${directives}] ${marker} [`), stream: false };
  const answer = of.post(path, asking, { signal: leaving.signal, key }).catch(() => null);
  const asked = () => of.engine.requests.find((one) => JSON.stringify(one.body).includes(marker));
  await until(() => asked() !== undefined, 5_000, "the engine to be asked");
  leaving.abort();
  expect(await answer).toBeNull();
  return { engine: asked()!, left_ms: performance.now() };
}

/**
 * The receipt of the only request at this path that was cancelled after position `from` of the log. Its id is read from
 * the log, because a client that left does not learn it.
 */
export async function receiptOf(of: Service, path: string, from: number): Promise<RequestReceipt> {
  const lines = () => of.stderr().slice(from).split("\n");
  const line = () =>
    lines().find((one) => one.includes('"outcome":"cancelled"') && one.includes(`"route":"${path}"`)) ?? "";
  await until(() => line() !== "", 15_000, "the line of the log");
  const { request_id } = JSON.parse(line());
  return endedReceipt(of, request_id, { deadline_ms: 2_000 });
}
