/**
 * Raises (temporary increases of limits) as an operator and a client see them: commands, refusals, what they show, and
 * their end while requests run.
 */

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { busyness } from "../../harness/busyness.ts";
import { model, startService } from "../../harness/engine.ts";
import { dollars } from "../../harness/money.ts";
import { newKey, newOrganization } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(180_000);

// A short request that asks for 256 tokens holds some 110,000 nanos: 100 a token of input, 400 of output.
const plans = { wide: "{ week: 10000000, requests_per_minute: 1000 }", bare: "{}" };

const service = await startService({ plans, engine: { directives: "", namesModel: false } });
afterAll(() => service.stop(), 60_000);

const organization = (plan: keyof typeof plans = "wide") => newOrganization(service, plan);
interface Shown {
  own: Record<string, { amount: string } | number | null>;
  raises: { limits: Record<string, { amount: string } | number | null>; until: string; set_by: string }[];
  in_force: Record<string, { limit: { amount: string } | null; from: string | null }>;
  standing: { week: { limit: object | null } } | null;
  version: number;
}
const soon = (ms: number) => new Date(Date.now() + ms).toISOString();
const chat = (key: string, content: string, rest: object = {}) =>
  service.post(
    "/v1/chat/completions",
    { model, messages: [{ role: "user", content }], max_tokens: 256, ...rest },
    { key },
  );

test("a raise is not part of the configuration: it is in no export, and stays where one is applied", async () => {
  const key = await newKey(service, await organization(), "--limit", "week=0.0000009");
  await service.json("limit", "raise", "key", key.id, "week=0.000005", "--until", soon(3_600_000));
  const exported = (await service.cli("export")).stdout;
  expect(exported).toContain('week: "0.0000009"');
  expect(exported).not.toContain("0.000005");
  const folder = mkdtempSync(join(tmpdir(), "sluice-raises-"));
  const file = join(folder, "organizations.yaml");
  writeFileSync(file, exported.replace('week: "0.0000009"', 'week: "0.0000008"'));
  await service.json("apply", "-f", file);
  rmSync(folder, { recursive: true, force: true });
  expect(await service.json<Shown>("limit", "show", "key", key.id)).toMatchObject({
    ...{ own: { week: { amount: "0.000000800" } }, in_force: { week: { limit: { amount: "0.000005000" } } } },
    standing: { week: { limit: dollars(5000) } },
  });
});

test("a raise that is not valid is refused, with what to do instead", async () => {
  const [org, empty] = [await organization(), await organization("bare")];
  const { id } = await newKey(service, org, "--limit", "week=0.0000009");
  const [in1h, past] = [soon(3_600_000), soon(-1_000)];
  const refusals: [RegExp, number, ...string[]][] = [
    [/'week' is \$0\.0000009 already, and \$0\.0000009 is not above it/, 1, "week=0.0000009", "--until", in1h],
    [/has no limit 'month', so there is nothing to increase/, 1, "month=0.5", "--until", in1h],
    [/above that of the organization '[\w-]+', \$0\.01/, 1, "week=0.010000001", "--until", in1h],
    [/is in the past/, 1, "week=0.000001", "--until", past],
    [/what to increase and until when/, 2, "week=0.000001"],
    [/must be/, 1, "week=9999999", "--until", in1h],
    [/ends within 366 days/, 1, "week=0.000001", "--until", soon(400 * 86_400_000)],
    [/increase of 'week' needs a number above \$0\.0000009, and not 'none'/, 1, "week=none", "--until", in1h],
    [/what to increase and until when/, 2],
    [/no limits for 'acme\/\*', so there is nothing to end/, 1, "--end", "--models", "acme/*"],
    [/nothing else with --end/, 2, "--end", "week=0.000001"],
    [/is not an instant|must be an instant/, 1, "week=0.000001", "--until", "tomorrow"],
    [/no limits for 'acme\/\*', so there is nothing to increase/, 1, "week=0.1", "--until", in1h, "--models", "acme/*"],
  ];
  for (const [says, exits, ...words] of refusals) {
    const refused = await service.json("limit", "raise", "key", id, ...words).then(() => "done", String);
    expect([words, refused]).toEqual([words, expect.stringContaining(`answered ${exits}: `)]);
    expect(refused).toMatch(says);
  }
  const bare = service.json("limit", "raise", "org", empty, "week=0.000000005", "--until", in1h);
  await expect(bare).rejects.toThrow("The organization has no limit 'week'");
  // With a raise of the organization's limit, its keys' limits can be raised too.
  await service.json("limit", "raise", "org", org, "week=0.03", "--until", in1h);
  await service.json("limit", "raise", "key", id, "week=0.02", "--until", in1h);
  // The key's second raise replaces its first.
  const again = await service.json<Shown>("limit", "raise", "key", id, "week=0.000001", "--until", soon(60_000));
  expect(again.raises).toMatchObject([{ limits: { week: { amount: "0.000001000" } } }]);
});

test("a raise ends while a stream runs: it stops there, and the next request is refused", async () => {
  const org = await organization();
  const limited = await newKey(service, org, "--limit", "week=0.00006");
  const length_ms = 2_000 * Math.min(busyness(), 6);
  const ends_ms = Date.now() + length_ms;
  await service.json("limit", "raise", "key", limited.id, "week=0.009", "--until", new Date(ends_ms).toISOString());
  const answer = await chat(limited.key, "[simulator: tokens=16000 tps=100] hello", {
    stream: true,
    max_tokens: 16_000,
  });
  expect(answer.status).toBe(200);
  const text = await answer.text();
  expect(Date.now()).toBeGreaterThanOrEqual(ends_ms);
  expect(Date.now() - ends_ms).toBeLessThan(2_000 * busyness());
  expect(text).toContain('"finish_reason":"length"');
  const receipt = await endedReceipt(service, requestIdOf(answer), { key: limited.key });
  expect(receipt).toMatchObject({ outcome: "completed", stopped_by: "usage_window" });
  const refused = await chat(limited.key, "hello");
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({ error: { limited_by: "key" } });
});

test("limits of a minute are raised and fall back within a second of the end", async () => {
  const org = await organization();
  const { id, key } = await newKey(service, org, "--limit", "requests_per_minute=1");
  expect((await chat(key, "hello")).status).toBe(200);
  expect((await chat(key, "hello")).status).toBe(429);
  const ends_ms = Date.now() + 2_000 * Math.min(busyness(), 6);
  const end = new Date(ends_ms).toISOString();
  await service.json("limit", "raise", "key", id, "requests_per_minute=500", "--until", end);
  expect((await chat(key, "hello")).status).toBe(200);
  expect((await chat(key, "hello")).headers.get("x-ratelimit-limit-requests")).toBe("500");
  await until(() => Date.now() > ends_ms, 60_000, "the end of the raise");
  let refused = await chat(key, "hello");
  const isBack = async () => {
    if (refused.status !== 429) refused = await chat(key, "hello");
    return refused.status === 429;
  };
  await until(isBack, 1_000, "the limit of a minute");
  expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining("'s limit of 1 request") } });
});
