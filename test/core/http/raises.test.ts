/** Raises as an operator and a client meet them: commands, refusals, what they show, and their end while requests run. */

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
interface Raised {
  id: string;
  raise: { limits: Record<string, number | null>; until: string; set_by: string } | null;
  standing: { week: { limit: object | null } } | null;
  limits: Record<string, number | null>;
}
const soon = (ms: number) => new Date(Date.now() + ms).toISOString();
const chat = (key: string, content: string, rest: object = {}) =>
  service.post(
    "/v1/chat/completions",
    { model, messages: [{ role: "user", content }], max_tokens: 256, ...rest },
    { key },
  );

test("a raise of a key, a team and an organization is shown with its end, and limits below it stay what they are", async () => {
  const org = await organization();
  const team = await service.json<Raised>("team", "create", "--org", org, "--name", "writers", "--limit", "week=1000");
  const key = await newKey(service, org, "--limit", "week=900,concurrent_requests=2");
  const until_ = soon(3_600_000);
  for (const [words, limits] of [
    [["key", "raise", key.id], "week=5000"],
    [["team", "raise", team.id], "week=6000"],
    [["org", "raise", org], "week=20000000,requests_per_minute=2000"],
  ] as const) {
    const raised = await service.json<Raised>(...words, "--limit", limits, "--until", until_);
    expect(raised.raise).toMatchObject({ until: until_, limits: { session: null } });
  }
  const shown = await service.json<Raised>("key", "show", key.id);
  expect(shown).toMatchObject({
    raise: { limits: { week: 5000, concurrent_requests: null }, until: until_, set_by: expect.stringMatching(/^cli:/) },
    standing: { week: { limit: dollars(5000) }, concurrent_requests: 2 },
    limits: { week: 900 },
  });
  const words = (await service.cli("key", "show", key.id)).stdout;
  expect(words).toMatch(/limits +week 900, concurrent_requests 2\n/);
  expect(words).toMatch(/raised to +week 5,000, until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(cli:/);
  expect(await service.json<Raised>("team", "show", team.id)).toMatchObject({
    ...{ raise: { limits: { week: 6000 } }, standing: { week: { limit: dollars(6000) } } },
  });
  expect(await service.json<Raised[]>("org", "list")).toContainEqual(
    expect.objectContaining({ slug: org, raise: expect.objectContaining({ until: until_ }) }),
  );
  expect(await service.json<object>("usage", "show", org)).toMatchObject({ week: { limit: dollars(20_000_000) } });

  const [entry] = await service.json<object[]>("audit", "list", "--limit", "1");
  expect(entry).toMatchObject({ action: "organization.raise", details: { before: null, raise: { until: until_ } } });

  // A raise is no configuration.
  const exported = (await service.cli("export")).stdout;
  expect(exported).toContain("week: 900");
  expect(exported).not.toContain("5000");
  const folder = mkdtempSync(join(tmpdir(), "sluice-raises-"));
  const file = join(folder, "organizations.yaml");
  writeFileSync(file, exported.replace("week: 900", "week: 800"));
  await service.json("apply", "-f", file);
  rmSync(folder, { recursive: true, force: true });
  expect(await service.json<Raised>("key", "show", key.id)).toMatchObject({
    ...{ limits: { week: 800 }, raise: { limits: { week: 5000 } }, standing: { week: { limit: dollars(5000) } } },
  });

  const ended = await service.json<Raised>("key", "raise", key.id, "--end");
  expect(ended).toMatchObject({ raise: null, limits: { week: 800 } });
  expect((await service.json<Raised>("key", "show", key.id)).standing?.week.limit).toEqual(dollars(800));
});

test("a raise that is not valid is refused, with what to do instead", async () => {
  const [org, empty] = [await organization(), await organization("bare")];
  const { id } = await newKey(service, org, "--limit", "week=900");
  const [in1h, past] = [soon(3_600_000), soon(-1_000)];
  const refusals: [RegExp, ...string[]][] = [
    [/'week' is 900 already, and a raise to 900 is not above it/, id, "--limit", "week=900", "--until", in1h],
    [/has no limit 'month', so there is nothing to raise/, id, "--limit", "month=5", "--until", in1h],
    [/above that of the plan 'wide', 10,000,000/, id, "--limit", "week=10000001", "--until", in1h],
    [/is in the past/, id, "--limit", "week=1000", "--until", past],
    [/needs an instant at which it ends/, id, "--limit", "week=1000"],
    [/must be/, id, "--limit", "week=9999999999999999", "--until", in1h],
    [/ends within 366 days/, id, "--limit", "week=1000", "--until", soon(400 * 86_400_000)],
    [/Specify the limits to raise/, id, "--limit", "week=none", "--until", in1h],
    [/Specify the limits to raise/, id],
    [/not raised, so there is nothing to end/, id, "--end"],
    [/give nothing else/, id, "--end", "--limit", "week=1000"],
    [/There is no key/, "key_none", "--end"],
    [/is not an instant|must be an instant/, id, "--limit", "week=1000", "--until", "tomorrow"],
  ];
  for (const [says, ...words] of refusals) {
    const { code, stderr } = await service.cli("key", "raise", ...words);
    expect([words, code, stderr]).toEqual([words, 1, expect.stringMatching(says)]);
  }
  const { stderr } = await service.cli("org", "raise", empty, "--limit", "week=5", "--until", in1h);
  expect(stderr).toMatch(/The organization has no limit 'week'/);
  // An organization's raise makes room for those of its keys.
  await service.json("org", "raise", org, "--limit", "week=30000000", "--until", in1h);
  await service.json("key", "raise", id, "--limit", "week=20000000", "--until", in1h);
  // The second takes the place of the first.
  const again = await service.json<Raised>("key", "raise", id, "--limit", "week=1000", "--until", soon(60_000));
  expect(again.raise?.limits.week).toBe(1000);
});

test("a raise ends while a stream runs: it stops there, and the next request is refused", async () => {
  const org = await organization();
  const limited = await newKey(service, org, "--limit", "week=60000");
  const length_ms = 2_000 * Math.min(busyness(), 2);
  const ends_ms = Date.now() + length_ms;
  await service.json("key", "raise", limited.id, "--limit", "week=9000000", "--until", new Date(ends_ms).toISOString());
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
  const ends_ms = Date.now() + 2_000 * Math.min(busyness(), 2);
  const end = new Date(ends_ms).toISOString();
  await service.json("key", "raise", id, "--limit", "requests_per_minute=500", "--until", end);
  expect((await chat(key, "hello")).status).toBe(200);
  expect((await chat(key, "hello")).headers.get("x-ratelimit-limit-requests")).toBe("500");
  await until(() => Date.now() > ends_ms + 1_000, 60_000, "the end of the raise");
  const refused = await chat(key, "hello");
  expect([refused.status, ((await refused.json()) as { error: { message: string } }).error.message]).toEqual([
    429,
    expect.stringContaining("'s limit of 1 request"),
  ]);
});
