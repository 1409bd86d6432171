/** Clients that disconnect from an answer, and the receipts of those answers. */
import { expect } from "bun:test";
import { model, type Service } from "../../harness/engine.ts";
import { lineOf } from "../../harness/log-lines.ts";
import { endedReceipt } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

interface Asked {
  key?: string;
  stream?: boolean;
  /** The client disconnects when the engine has the request and has produced this many tokens. */
  tokens?: number;
}

/** Requests an answer whose body is made with these directives, and disconnects from it. */
export async function leftAt(
  of: Service,
  path: string,
  body: (directives: string) => object,
  directives: string,
  { key = of.key, stream = false, tokens = 0 }: Asked = {},
) {
  const leaving = new AbortController();
  const marker = `marker-${crypto.randomUUID()}`;
  const asking = { model, ...body(`${directives}] ${marker} [`), stream };
  const headers = { "x-client-request-id": marker };
  const answer = of
    .post(path, asking, { signal: leaving.signal, key, headers })
    .then((response) => response.text())
    .catch(() => null);
  const asked = () => of.engine.requests.find((one) => JSON.stringify(one.body).includes(marker));
  await until(() => (asked()?.tokens ?? -1) >= tokens, 5_000, "the engine to be asked");
  leaving.abort();
  expect(await answer).toBeNull();
  /** Only the log has the id of the request, because a client that disconnected does not learn it. */
  const logged = () => lineOf(of, { event: "request", x_client_request_id: marker });
  return {
    engine: asked()!,
    left_ms: performance.now(),
    logged,
    receipt: async () => endedReceipt(of, (await logged()).request_id, { deadline_ms: 2_000 }),
  };
}
