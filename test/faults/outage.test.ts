/**
 * While Postgres is down, running requests go on within their lease and are settled later, new requests are refused
 * with a retry-after, and no restart is needed afterwards.
 */
import { expect, test } from "bun:test";
import { uuidOf } from "../../src/core/store/ids.ts";
import { until } from "../harness/until.ts";
import { rigForFile } from "./file-rig.ts";
import { model, post } from "./rig.ts";
import { ask } from "./stores.ts";

const rig = rigForFile({ nodes: 1, plan: "{}", requests_max: 1000 });

const asked = (path: string, body: object) => post(rig.nodes[0]!, path, rig.key, { model, ...body });
const chat = (directives: string, words: number) => {
  const content = `[simulator: ${directives}]${" hello".repeat(words)}`;
  return asked("/v1/chat/completions", { stream: true, messages: [{ role: "user", content }] });
};
const readiness = async () => (await fetch(`${rig.nodes[0]!.url}/readyz`)).status;

test("streams outlive an outage of Postgres, whole; new requests wait for it; all is well after it, without a restart", async () => {
  const responses = (body: object) => asked("/v1/responses", body);
  await (await chat("", 3)).text();
  const first = (await (await responses({ input: "one" })).json()) as { id: string };
  const running = await chat("tps=40", 40);
  const whole = running.text();
  // The response cannot be stored while Postgres is down, and a request that continues a stored response is refused
  // until then.
  const response = await responses({ input: `[simulator: tps=40]${" hello".repeat(40)}`, stream: true });
  const wholeResponse = response.text();
  const asks = [() => chat("", 3), () => responses({ input: "two", previous_response_id: first.id })];

  await rig.postgres.kill();
  await until(async () => (await readiness()) === 503, 5000, "/readyz to say so");
  for (const again of asks) {
    const refused = await again();
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(((await refused.json()) as { error: { code: string } }).error.code).toBe("storage_unavailable");
  }
  const text = await wholeResponse;
  expect(text).toContain("event: response.completed");
  expect(text.trimEnd()).toEndWith("data: [DONE]");
  await rig.postgres.start();
  expect((await whole).trimEnd()).toEndWith("data: [DONE]");
  await until(async () => (await readiness()) === 200, 10_000, "/readyz to be ready again");
  for (const again of asks) await until(async () => (await again()).status === 200, 10_000, "a request to be answered");
  const id = uuidOf(running.headers.get("x-service-request-id") ?? "", "req_")!;
  const hasRecord = async () =>
    (await ask(rig.postgres.port, (db) => db.query("select 1 from usage_record where request_id = $1", [id])))
      .length === 1;
  await until(hasRecord, 10_000, "the stream's record");
}, 60_000);
