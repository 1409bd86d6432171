/**
 * Claude Code, unchanged, against the service in front of the simulator: `npm run test:clients -- claude`. Its features
 * work, a limit stops it without retries, and it recovers by itself from an engine's faults.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { model, type Service, startService } from "../../harness/engine.ts";
import { startSimulator } from "../../harness/simulator.ts";
import {
  neededMessage,
  smallKey,
  spentMessage,
  spentTeam,
  tooSmall,
  usedUpKey,
  usedUpMessage,
  weekly,
} from "../limited-keys.ts";
import type { Asked } from "../traffic.ts";
import { type Run, type RunOptions, runAgent } from "./agent.ts";

setDefaultTimeout(180_000);

let service: Service;
beforeAll(async () => {
  service = await startService({
    engine: { directives: "", namesModel: false },
    plans: weekly,
  });
});
afterAll(async () => {
  await service.stop();
});

const files = { "one.txt": "the word is apple\n", "two.txt": "the word is pear\n" };
/** A prompt that makes the model call two tools in one turn, and then repeat their results in its final text. */
const readBoth = (folder: string) => {
  const call = (name: string) => `call=Read:${btoa(JSON.stringify({ file_path: `${folder}/${name}` }))}`;
  const calls = Object.keys(files).map(call);
  return `Read both files. [simulator: ${calls.join(" ")}]`;
};
const bearer = () => ({ ANTHROPIC_AUTH_TOKEN: service.key });
const run = (options: Partial<RunOptions>): Promise<Run> =>
  runAgent({ url: service.url, model, prompt: () => "Hello.", env: bearer(), files, ...options });

const messagesIn = ({ asked }: Run) => asked.filter(({ path }) => path === "/v1/messages");
const isStream = ({ body }: Pick<Asked, "body">) => body?.stream === true;
function expectBothRead({ failed, result }: Run): void {
  expect(result).toContain("apple");
  expect(result).toContain("pear");
  expect(failed).toBe(false);
}

describe("a tool loop with two parallel calls", () => {
  test("streamed, with a bearer token", async () => {
    const done = await run({ prompt: readBoth });
    expectBothRead(done);
    const messages = messagesIn(done);
    expect(messages.map(({ status }) => status)).toEqual([200, 200]);
    expect(messages.every(isStream)).toBe(true);
    expect(messages[0]?.headers.get("authorization")).toBe(`Bearer ${service.key}`);
    expect(done.usage.input_tokens).toBeGreaterThan(1000);
    const told = service.engine.requests.at(-1)?.body as { messages: { role: string }[] } | undefined;
    expect(told?.messages.filter(({ role }) => role === "tool")).toHaveLength(2);
    expect(JSON.stringify(told)).not.toContain("x-anthropic-billing-header");
  });

  test("streamed, with x-api-key", async () => {
    const done = await run({ prompt: readBoth, env: { ANTHROPIC_API_KEY: service.key } });
    expectBothRead(done);
    const [first] = messagesIn(done);
    expect(first?.headers.get("x-api-key")).toBe(service.key);
    expect(first?.headers.get("authorization")).toBeNull();
  });

  test("with both headers at once, of which one is somebody else's", async () => {
    const done = await run({ env: { ANTHROPIC_API_KEY: service.key, ANTHROPIC_AUTH_TOKEN: "somebody-elses" } });
    expect(done.failed).toBe(false);
  });

  test("in its non-streaming fallback", async () => {
    // Claude Code cannot read a stream without event names.
    const unreadable = () =>
      new Response('data: {"type":"message_start"}\n\n', { headers: { "content-type": "text/event-stream" } });
    const done = await run({ prompt: readBoth, instead: (asked) => (isStream(asked) ? unreadable() : undefined) });
    expectBothRead(done);
    const whole = messagesIn(done).filter((asked) => !isStream(asked));
    expect(whole.map(({ status }) => status)).toEqual([200, 200]);
  });
});

test("/context counts everything, two dozen at once, and asks no model", async () => {
  const before = service.engine.counts.requests;
  const done = await run({ prompt: () => "/context" });
  expect(done.result).toContain("Context Usage");
  expect(done.failed).toBe(false);
  const counts = done.asked.filter(({ path }) => path === "/v1/messages/count_tokens");
  expect(counts.length).toBeGreaterThanOrEqual(20);
  expect(counts.every(({ status }) => status === 200)).toBe(true);
  expect(service.engine.counts.requests).toBe(before);
});

describe("a refusal", () => {
  function expectLimited(done: Run, ...messages: (string | RegExp)[]): void {
    expect(done.failed).toBe(true);
    expect(messagesIn(done).map(({ status }) => status)).toEqual([429]);
    for (const message of messages) expect(done.result).toMatch(message);
  }

  test("for a limit that is reached ends it at once, with our message", async () => {
    expectLimited(await run({ env: { ANTHROPIC_AUTH_TOKEN: await usedUpKey(service) } }), usedUpMessage);
  });

  test("of a team that has used its money says so in words, and when it starts anew where the team is", async () => {
    await using spent = await spentTeam();
    expectLimited(await run({ url: spent.service.url, env: { ANTHROPIC_AUTH_TOKEN: spent.key } }), spentMessage);
  });

  test.each(tooSmall)("of what can never pass (%s) ends it at once, with our message", async (limit, why) => {
    const env = { ANTHROPIC_AUTH_TOKEN: await smallKey(service, limit) };
    expectLimited(await run({ env }), why, neededMessage);
  });

  test("of a model that there is not says so", async () => {
    const done = await run({ model: "acme/none" });
    expect(done.failed).toBe(true);
    expect(done.result).toContain("acme/none");
    expect(messagesIn(done).every(({ status }) => status === 404)).toBe(true);
  });
});

describe("the context window of a model that it does not know", () => {
  /**
   * Whether Claude Code compacts its conversation after two tool calls. The usage of the second response reports this
   * number of input tokens. All other requests go to the service.
   */
  const compacts = async (inputTokens: number) => {
    const done = await run({
      prompt: readBoth,
      env: { ...bearer(), CLAUDE_CODE_MAX_CONTEXT_TOKENS: "131072" },
      instead: (_, before) => [callAfter(50_000), callAfter(inputTokens)][before.length],
    });
    return messagesIn(done).some(({ body }) => /detailed summary/.test(JSON.stringify(body?.messages)));
  };

  test("is what CLAUDE_CODE_MAX_CONTEXT_TOKENS says: it compacts 33,000 tokens before its end", async () => {
    expect(await compacts(96_000)).toBe(false);
    expect(await compacts(100_000)).toBe(true);
  });
});

test("an engine that is away is given up after CLAUDE_CODE_MAX_RETRIES, with our message", async () => {
  const engine = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const away = await startService({ engineUrl: `http://127.0.0.1:${engine.port}/v1` });
  await engine.stop(true);
  try {
    const env = { ANTHROPIC_AUTH_TOKEN: away.key, CLAUDE_CODE_MAX_RETRIES: "2" };
    const done = await run({ url: away.url, env });
    expect(done.failed).toBe(true);
    expect(done.result).toContain("could not be reached");
    expect(messagesIn(done).map(({ status }) => status)).toEqual([503, 503, 503]);
  } finally {
    await away.stop();
  }
});

test("an engine that breaks off in the middle is asked again, and the work goes on", async () => {
  const simulator = await startSimulator({ namesModel: false });
  const engine = breakingOnce(simulator.url);
  const fragile = await startService({ engineUrl: engine.url });
  try {
    const done = await run({ url: fragile.url, env: { ANTHROPIC_AUTH_TOKEN: fragile.key }, prompt: readBoth });
    expectBothRead(done);
    expect(engine.broken()).toBe(1);
    expect(messagesIn(done).length).toBe(3);
  } finally {
    await fragile.stop();
    engine.stop();
    await simulator.stop();
  }
});

/** A Messages stream that reports this number of input tokens and calls the tool Read. */
function callAfter(inputTokens: number): Response {
  const cached = { cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
  const usage = { input_tokens: inputTokens, output_tokens: 20, ...cached };
  const message = { id: `msg_${inputTokens}`, type: "message", role: "assistant", model, content: [] };
  const call = { type: "tool_use", id: `toolu_${inputTokens}`, name: "Read", input: {} };
  const input = { type: "input_json_delta", partial_json: JSON.stringify({ file_path: "one.txt" }) };
  const events = [
    { type: "message_start", message: { ...message, stop_reason: null, usage } },
    { type: "content_block_start", index: 0, content_block: call },
    { type: "content_block_delta", index: 0, delta: input },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
  const frames = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  return new Response(frames.join(""), { headers: { "content-type": "text/event-stream" } });
}

/** An engine whose first stream breaks off after a few hundred bytes, in the middle of the response. */
function breakingOnce(url: string) {
  let broken = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const answer = await fetch(new URL(pathname, url), {
        method: request.method,
        headers: { "content-type": "application/json" },
        body: await request.text(),
      });
      if (broken > 0) return answer;
      broken += 1;
      const text = await answer.text();
      return new Response(text.slice(0, Math.min(1500, text.length / 2)), {
        headers: { "content-type": "text/event-stream" },
      });
    },
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, broken: () => broken, stop: () => void server.stop(true) };
}
