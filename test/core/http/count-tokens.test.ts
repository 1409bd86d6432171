/** POST /v1/messages/count_tokens over real sockets: exact, cheap, and in nobody's way. */
import { afterAll, describe, expect, test } from "bun:test";
import type { RequestReceipt } from "../../../src/core/operations/receipt-shape.ts";
import { busyness } from "../../harness/busyness.ts";
import { newMember } from "../../harness/organizations.ts";
import { endedReceipt } from "../../harness/receipts.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

const path = "/v1/messages/count_tokens";
const exact = "openai/gpt-oss-20b";
const estimated = "z-ai/glm-4.6";

const service = await startSluice();
afterAll(() => service.stop(), 60_000);

const foo = (model: string, content: unknown = "foo") => ({ model, messages: [{ role: "user", content }], tools: [] });
const count = async (body: unknown, init: Parameters<Sluice["post"]>[2] = {}) => {
  const response = await service.post(path, body, init);
  const { input_tokens } = (await response.json()) as { input_tokens: number };
  return { status: response.status, input_tokens };
};
const codeOf = async (response: Response) => {
  const { error } = (await response.json()) as { error: { details: { error_code: string }; message: string } };
  return `${response.status} ${error.details.error_code}`;
};

/** The usage of a request whose client left once it was admitted. */
async function leftAfter(body: object): Promise<RequestReceipt["usage"]> {
  const leaving = new AbortController();
  const logged = service.stderr().length;
  const answer = service.post("/v1/messages", { ...body, max_tokens: 600 }, { signal: leaving.signal });
  const gone = answer.then(() => {}).catch(() => {});
  const holds = async () => /^usage_holds 1$/m.test(await (await service.fetch("/metrics")).text());
  await until(holds, 10_000, "the grant");
  leaving.abort();
  await gone;
  let id: string | undefined;
  const line = /"event":"request","request_id":"(req_\w+)",.*"status":499,/;
  const isLogged = () => {
    id = line.exec(service.stderr().slice(logged))?.[1];
    return id !== undefined;
  };
  await until(isLogged, 10_000, "its line in the log");
  const { outcome, usage } = await endedReceipt(service, id);
  expect(outcome).toBe("cancelled");
  return usage;
}

describe("a count", () => {
  test("is exact for a model whose tokenizer the catalog names", async () => {
    expect(await count(foo(exact))).toEqual({ status: 200, input_tokens: 68 });
    expect(await count(foo("meta-llama/llama-3.3-70b-instruct"))).toEqual({ status: 200, input_tokens: 36 });
  }, 30_000);

  test("grows with the text where it is an estimate, and comes near to what the engine reports", async () => {
    const text = "Every morning the gardener counts her tulips and writes the number down. ".repeat(200);
    const before = await count(foo(estimated, text));
    expect(before.input_tokens).toBeGreaterThan((await count(foo(estimated, text.slice(0, 3000)))).input_tokens);
    const ask = { ...foo(estimated, text), max_tokens: 8 };
    let reported = 0;
    for (let round = 0; round < 3; round++) {
      const answer = (await (await service.post("/v1/messages", ask)).json()) as { usage: { input_tokens: number } };
      reported = answer.usage.input_tokens;
    }
    const { input_tokens } = await count(foo(estimated, text));
    expect(Math.abs(input_tokens / reported - 1)).toBeLessThan(0.05);
  });

  test("is what a client is charged that leaves before its answer", async () => {
    const body = foo(exact, `[simulator: ttft=20000] ${"Every morning the gardener counts her tulips. ".repeat(50)}`);
    const { input_tokens } = await count(body);
    // If a busy machine gives the counting worker no time within its second, the charge is the estimate.
    let usage = await leftAfter(body);
    for (let attempt = 0; attempt < 5 && usage.source === "estimated"; attempt++) usage = await leftAfter(body);
    expect(usage).toMatchObject({ input_tokens, output_tokens: 0, source: "counted" });
  }, 90_000);

  test("needs a key, and no scope of it", async () => {
    expect(await codeOf(await service.post(path, foo(exact), { key: null }))).toBe("401 missing_api_key");
    const { key } = await newMember(service, "unlimited", "--scopes", "usage:read");
    expect((await count(foo(exact), { key })).status).toBe(200);
    const usage = await service.fetch("/v1/service/usage", { key });
    const { session } = (await usage.json()) as { session: { usage_percent: number; reset_at: string } };
    expect(session.usage_percent).toBe(0);
    // No session was opened, so the reported one would begin now.
    expect(Math.abs(Date.parse(session.reset_at) - Date.now() - 5 * 3_600_000)).toBeLessThan(60_000);
  });
});

test("a tool without a name is counted, as the contract has it: which engine will be asked is not known", async () => {
  const tool = { defer_loading: true };
  const response = await service.post("/v1/messages/count_tokens", {
    model: "meta-llama/llama-3.1-8b-instruct",
    messages: [{ role: "user", content: "hello" }],
    tools: [tool],
  });
  expect(response.status).toBe(200);
});

test("two dozen at once, as Claude Code asks, are all answered", async () => {
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, at) => count(foo(at % 2 ? exact : estimated, `foo ${"bar ".repeat(at)}`))),
  );
  expect(answers.map((answer) => answer.status)).toEqual(Array(24).fill(200));
});

test("a body of 32 MiB is counted, and holds up nobody", async () => {
  const line = "It was a bright cold day in a month without a name. ";
  const text = line.repeat(Math.floor((32 * 1024 * 1024 - 200) / line.length));
  let slowest_ms = Number.POSITIVE_INFINITY;
  // On a machine that is busy with other things one run may be slow; all of them are not.
  for (let attempt = 0; attempt < 6 && slowest_ms > 200; attempt++) {
    let counting = true;
    const counted = count(foo(exact, text)).finally(() => {
      counting = false;
    });
    let longest_ms = 0;
    while (counting) {
      const asked_ms = performance.now();
      await (await fetch(`${service.url}/livez`)).text();
      longest_ms = Math.max(longest_ms, performance.now() - asked_ms);
    }
    expect((await counted).input_tokens).toBeGreaterThan(5_000_000);
    slowest_ms = Math.min(slowest_ms, longest_ms);
  }
  expect(slowest_ms).toBeLessThan(200 * busyness());
}, 60_000);
