/** Requests that are refused count too: a key that sends nothing but rubbish is told to wait before its body is read. */
import { afterAll, expect, test } from "bun:test";
import { model, says, startService } from "../../harness/engine.ts";
import { newMember } from "../../harness/organizations.ts";

const service = await startService({ plans: { slow: "{ requests_per_minute: 60 }" } });
afterAll(() => service.stop(), 60_000);

const attempts_max = 600;

test("after ten minutes' worth of bad bodies each protocol says when to come back, and counts go on", async () => {
  const { key } = await newMember(service, "slow");
  const send = (path: string, body = "{") =>
    fetch(service.url + path, {
      ...{ method: "POST", body },
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    });
  /** Sends until a request is refused because there were too many: the bucket refills while this machine is slow. */
  const untilRefused = async (path: string) => {
    for (let parsed = 0; parsed < 20 * attempts_max; ) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => send(path)));
      parsed += answers.filter(({ status }) => status === 400).length;
      const refused = answers.find(({ status }) => status === 429);
      if (refused) return { refused, parsed };
    }
    throw new Error("no request is refused");
  };
  const { refused, parsed } = await untilRefused("/v1/chat/completions");
  expect(parsed).toBeGreaterThanOrEqual(attempts_max);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await refused.json()).toMatchObject({ error: { type: "rate_limit_error", code: "rate_limit_exceeded" } });

  for (const path of ["/v1/messages", "/v1/responses"]) {
    const { refused } = await untilRefused(path);
    expect(refused.headers.get("retry-after")).toBe("1");
    const { error } = (await refused.json()) as { error: Record<string, unknown> };
    if (path === "/v1/messages")
      expect(error).toMatchObject({ type: "rate_limit_error", details: { error_code: "rate_limit_exceeded" } });
    else expect(error).toMatchObject({ code: "rate_limit_exceeded", message: expect.stringContaining("600 requests") });
  }
  const counted = await send("/v1/messages/count_tokens", JSON.stringify({ model, messages: says("", "hello") }));
  expect(counted.status).toBe(200);
}, 120_000);
