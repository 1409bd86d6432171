/**
 * Messages at its limits: a client without room is told to stop at once, counting tokens needs no room and takes none,
 * and many short messages must not hold up others.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { busyness } from "../../harness/busyness.ts";
import { model, says, startService } from "../../harness/engine.ts";
import { newMember } from "../../harness/organizations.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const path = "/v1/messages";
const plans = { small: "{ session: 14000, requests_per_minute: 100 }", one: "{ requests_per_minute: 1 }" };

const service = await startService({ plans });
afterAll(() => service.stop());

const keyOn = async (plan: keyof typeof plans) => (await newMember(service, plan)).key;
const ask = { model, max_tokens: 10, messages: says("", "hello") };
const count = (key: string) => service.post(`${path}/count_tokens`, { model, messages: ask.messages }, { key });

interface Refusal {
  error: { type: string; message: string; details: Record<string, unknown> };
}

describe.each([false, true])("a session with too little left (stream: %p)", (stream) => {
  test("is refused so that Claude Code stops at once, with our message; counting goes on", async () => {
    const key = await keyOn("small");
    const post = () => service.post(path, { ...ask, stream }, { key });
    let refused = await post();
    await until(
      async () => {
        await refused.clone().text();
        if (refused.status === 429 && refused.headers.get("retry-after") !== "1") return true;
        refused = await post();
        return false;
      },
      20_000,
      "the session to be full of settled use",
    );
    const { error } = (await refused.json()) as Refusal;
    expect(error.type).toBe("rate_limit_error");
    expect(error.message).toMatch(/left of its \$0\.000014 for this session of five hours/);
    const { error_code, resets_at, window, plan_type } = error.details;
    expect({ error_code, window, plan_type }).toEqual({
      error_code: "usage_limit_reached",
      window: "session",
      plan_type: "small",
    });
    expect(refused.headers.get("anthropic-ratelimit-unified-status")).toBe("rejected");
    expect(refused.headers.get("anthropic-ratelimit-unified-reset")).toBe(String(resets_at));
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(refused.headers.get("retry-after")).toBeNull();
    expect((await count(key)).status).toBe(200);
  });
});

test("counting takes nothing of the minute, and is not held to it", async () => {
  const key = await keyOn("one");
  for (let round = 0; round < 3; round++) expect((await count(key)).status).toBe(200);
  expect((await service.post(path, ask, { key })).status).toBe(200);
  const refused = await service.post(path, ask, { key });
  expect(refused.status).toBe(429);
  expect(((await refused.json()) as Refusal).error).toMatchObject({
    type: "rate_limit_error",
    details: { error_code: "rate_limit_exceeded" },
  });
  expect(refused.headers.get("anthropic-ratelimit-unified-status")).toBeNull();
  expect((await count(key)).status).toBe(200);
});

describe("as many short messages as a body may hold hold up nobody for more than 200 ms", () => {
  const many = 15_001;
  const rest = ", and so on until nobody reads it any more".repeat(2);
  const shapes: Record<string, (at: number) => object> = {
    "of text": (at) => ({ role: at % 2 ? "assistant" : "user", content: `hi ${at}${rest}` }),
    "of blocks": (at) => ({
      role: at % 2 ? "assistant" : "user",
      content: [{ type: "text", text: `hi ${at}${rest}` }],
    }),
  };

  test.each(Object.entries(shapes))("%s", async (_name, shape) => {
    // These messages exceed the model's context, so they are read, checked, and refused with the number of their
    // tokens.
    const body = JSON.stringify({ ...ask, messages: Array.from({ length: many }, (_, at) => shape(at)) });
    let best_ms = Number.POSITIVE_INFINITY;
    // On a machine that is busy with other things one run may be slow; all of them are not.
    for (let attempt = 0; attempt < 5 && best_ms > 200; attempt++) {
      let running = true;
      const answer = service.post(path, body).finally(() => {
        running = false;
      });
      let longest_ms = 0;
      while (running) {
        const asked_ms = performance.now();
        await (await fetch(`${service.url}/livez`)).text();
        longest_ms = Math.max(longest_ms, performance.now() - asked_ms);
      }
      const refused = await answer;
      expect(refused.status).toBe(400);
      expect(((await refused.json()) as Refusal).error.details.error_code).toBe("context_length_exceeded");
      best_ms = Math.min(best_ms, longest_ms);
    }
    expect(best_ms).toBeLessThan(200 * busyness());
  });

  test("the one that is wrong among them is named", async () => {
    const messages = Array.from({ length: many }, (_, at) => ({ role: "user", content: at === 12_345 ? 7 : "hi" }));
    const refused = await service.post(path, { ...ask, messages });
    expect(((await refused.json()) as Refusal).error.message).toStartWith("messages[12345].content: ");
  });
});

test("without a plan: 402, in the form of Messages", async () => {
  const { organization, key } = await newMember(service, "one");
  await service.json("org", "plan", organization, "--none");
  const refused = await service.post(path, ask, { key });
  expect(refused.status).toBe(402);
  expect(((await refused.json()) as Refusal).error).toMatchObject({
    type: "billing_error",
    details: { error_code: "no_active_plan" },
  });
});
