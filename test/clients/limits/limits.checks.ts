/**
 * What clients make of a request that is above a whole limit and can never pass: `npm run test:clients -- limits`. Each is
 * run as its users have it, and the requests that it makes are counted: docs/clients.md has the table.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { model, type Service, startService, words } from "../../harness/engine.ts";
import { watched } from "../traffic.ts";
import { providers, runOpencode } from "./opencode.ts";

setDefaultTimeout(60_000);

const folders = JSON.parse(process.env.LIMITS_CLIENTS ?? "{}") as Record<string, string>;
// biome-ignore lint/suspicious/noExplicitAny: the packages are not there when types are checked
const fetched = (client: string, name: string): Promise<any> => import(Bun.resolveSync(name, folders[client]!));

let service: Service;
let watch: ReturnType<typeof watched>;
let key: string;
beforeAll(async () => {
  service = await startService({ engine: { directives: "", namesModel: false } });
  watch = watched({ url: service.url });
  await service.json("org", "create", "narrow", "--plan", "pro");
  const create = ["key", "create", "--org", "narrow", "--name", "agent", "--limit", "tokens_per_minute=300"];
  key = (await service.json<{ key: string }>(...create)).key;
});
afterAll(async () => {
  watch.stop();
  await service.stop();
});
beforeEach(() => {
  watch.asked.length = 0;
});

const prompt = words(2_000);
const why = /needs at least [\d,]+ tokens, more than the key's whole limit of 300 tokens a minute/;
const statuses = () => watch.asked.filter(({ path }) => path.startsWith("/v1/")).map(({ status }) => status);
const thrown = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error as Error,
  );

describe.each(["5", "6", "7"])("the AI SDK, major %s", (major) => {
  const modelBy: Record<string, () => Promise<unknown>> = {
    chat: async () => {
      const { createOpenAICompatible } = await fetched(major, "@ai-sdk/openai-compatible");
      return createOpenAICompatible({ name: "sluice", baseURL: `${watch.url}/v1`, apiKey: key }).chatModel(model);
    },
    responses: async () => {
      const { createOpenAI } = await fetched(major, "@ai-sdk/openai");
      return createOpenAI({ baseURL: `${watch.url}/v1`, apiKey: key }).responses(model);
    },
    messages: async () => {
      const { createAnthropic } = await fetched(major, "@ai-sdk/anthropic");
      return createAnthropic({ baseURL: `${watch.url}/v1`, apiKey: key })(model);
    },
  };

  // It knows a 429 by its status alone, as worth two more tries; no header and no body tells it otherwise.
  test.each(Object.keys(modelBy))("by %s asks three times in six seconds, and says why", async (protocol) => {
    const { generateText } = await fetched(major, "ai");
    const asking = async (more: object) => generateText({ model: await modelBy[protocol]!(), prompt, ...more });
    const error = await thrown(asking({}));
    expect(error?.message).toMatch(why);
    expect(statuses()).toEqual([429, 429, 429]);
    watch.asked.length = 0;
    expect((await thrown(asking({ maxRetries: 0 })))?.message).toMatch(why);
    expect(statuses()).toEqual([429]);
  });
});

describe("LangChain for JS", () => {
  const chatBy: Record<string, (more: object) => Promise<{ invoke(prompt: string): Promise<unknown> }>> = {
    chat: async (more) => openai({ useResponsesApi: false, ...more }),
    responses: async (more) => openai({ useResponsesApi: true, ...more }),
    messages: async (more) => {
      const { ChatAnthropic } = await fetched("langchain", "@langchain/anthropic");
      return new ChatAnthropic({ model, apiKey: key, anthropicApiUrl: watch.url, maxTokens: 64, ...more });
    },
  };
  async function openai(more: object) {
    const { ChatOpenAI } = await fetched("langchain", "@langchain/openai");
    return new ChatOpenAI({ model, apiKey: key, configuration: { baseURL: `${watch.url}/v1` }, ...more });
  }

  test.each(Object.keys(chatBy))("by %s asks once, and says why", async (protocol) => {
    const chat = await chatBy[protocol]!({});
    expect((await thrown(chat.invoke(prompt)))?.message).toMatch(why);
    expect(statuses()).toEqual([429]);
  });
});

/** It takes every 429 for one to wait for, and waits longer each time. */
const opencode_ms = 300_000;

test(
  "opencode asks for a minute or two by each protocol, and then says why",
  async () => {
    const ended = Object.keys(providers).map(async (name) => {
      const protocol = name as keyof typeof providers;
      const own = watched({ url: service.url });
      try {
        const to = { url: own.url, key, model, protocol, limit_ms: opencode_ms - 10_000 };
        return { ...(await runOpencode(folders.opencode!, to)), asked: own.asked };
      } finally {
        own.stop();
      }
    });
    for (const { code, shown, asked } of await Promise.all(ended)) {
      expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([429]));
      expect(asked.length).toBeLessThanOrEqual(12);
      expect(code).not.toBe(0);
      expect(shown).toMatch(why);
    }
  },
  opencode_ms,
);
