/**
 * While Postgres is away, running requests go on within their lease and are settled later, new requests are told to
 * wait, and no restart is needed.
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
const isReady = () => until(async () => (await readiness()) === 200, 10_000, "/readyz to be ready again");

/** Postgres goes away, and the node reports that: requests that need Postgres are told to wait. */
async function withoutPostgres(refused: () => Promise<Response>): Promise<void> {
  await rig.postgres.kill();
  await until(async () => (await readiness()) === 503, 5000, "/readyz to say so");
  const response = await refused();
  expect(response.status).toBe(503);
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(((await response.json()) as { error: { code: string } }).error.code).toBe("storage_unavailable");
}

test("a stream outlives an outage of Postgres; new requests wait for it; all is well after it, without a restart", async () => {
  await (await chat("", 3)).text();
  const running = await chat("tps=40", 40);
  const whole = running.text();
  await withoutPostgres(() => chat("", 3));
  await rig.postgres.start();
  expect((await whole).trimEnd()).toEndWith("data: [DONE]");
  await isReady();
  await until(async () => (await chat("", 3)).status === 200, 10_000, "a request to be answered");
  const id = uuidOf(running.headers.get("x-service-request-id") ?? "", "req_")!;
  await until(
    async () =>
      (await ask(rig.postgres.port, (db) => db.query("select 1 from usage_record where request_id = $1", [id])))
        .length === 1,
    10_000,
    "the stream's record",
  );
}, 60_000);

test("a response whose stream meets the outage is answered whole, though it cannot be kept; what refers to one waits", async () => {
  const responses = (body: object) => asked("/v1/responses", body);
  const first = (await (await responses({ input: "one" })).json()) as { id: string };
  const running = await responses({ input: `[simulator: tps=40]${" hello".repeat(40)}`, stream: true });
  const whole = running.text();
  const next = () => responses({ input: "two", previous_response_id: first.id });
  await withoutPostgres(next);
  const text = await whole;
  expect(text).toContain("event: response.completed");
  expect(text.trimEnd()).toEndWith("data: [DONE]");
  await rig.postgres.start();
  await isReady();
  await until(async () => (await next()).status === 200, 10_000, "a request to be answered");
}, 60_000);
