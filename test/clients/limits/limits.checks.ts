/**
 * How clients react to two refusals: of a request that exceeds a whole limit and so can never pass, and of a request
 * whose usage window is exhausted for days. Run by `npm run test:clients -- limits`. Each client is unmodified, and its
 * requests are counted: docs/clients.md has the tables.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { model, type Service, startService, words } from "../../harness/engine.ts";
import { nanosOf, typed } from "../../harness/money.ts";
import { newMember } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { thrown } from "../sdk.ts";
import { watched } from "../traffic.ts";
import { providers, runOpencode } from "./opencode.ts";

setDefaultTimeout(60_000);

const folders = JSON.parse(process.env.LIMITS_CLIENTS ?? "{}") as Record<string, string>;
// biome-ignore lint/suspicious/noExplicitAny: the packages are not there when types are checked
const fetched = (client: string, name: string): Promise<any> => import(Bun.resolveSync(name, folders[client]!));

let service: Service;
let watch: ReturnType<typeof watched>;
const keys = { "a request that can never pass": "", "a window that is used up for days": "" };
type Refusal = keyof typeof keys;
const refusals = Object.keys(keys) as Refusal[];
beforeAll(async () => {
  service = await startService({
    engine: { directives: "", namesModel: false },
    plans: { weekly: "{ week: 100000000 }" },
  });
  watch = watched({ url: service.url });
  await service.json("org", "create", "narrow", "--plan", "pro");
  const create = ["key", "create", "--org", "narrow", "--name", "agent", "--limit", "tokens_per_minute=300"];
  keys["a request that can never pass"] = (await service.json<{ key: string }>(...create)).key;
  const member = await newMember(service, "weekly");
  keys["a window that is used up for days"] = member.key;
  await usedUp(member);
});
afterAll(async () => {
  watch.stop();
  await service.stop();
});
beforeEach(() => {
  watch.asked.length = 0;
});

const prompt = words(2_000);
const why: Record<Refusal, RegExp> = {
  "a request that can never pass":
    /needs at least [\d,]+ tokens, more than the key \S+'s whole limit of 300 tokens a minute/,
  "a window that is used up for days": /its \$0\.10 for this week.*starts anew on /,
};
/** Opens the usage window of the week by a first request, and then books the rest of the limit as used. */
async function usedUp({ organization, key }: { organization: string; key: string }): Promise<void> {
  const messages = [{ role: "user", content: "hello" }];
  const answer = await service.post("/v1/chat/completions", { model, messages, max_tokens: 8 }, { key });
  const { cost } = await endedReceipt(service, requestIdOf(answer), { key });
  const rest = ["--window", "week", `--amount=${typed(100_000_000 - nanosOf(cost.charged))}`, "--reason", "test"];
  await service.json("usage", "adjust", organization, ...rest);
}
const statuses = () => watch.asked.filter(({ path }) => path.startsWith("/v1/")).map(({ status }) => status);
const errorFrom = (work: Promise<unknown>) => thrown(work) as Promise<Error | undefined>;

describe.each(["5", "6", "7"])("the AI SDK, major %s", (major) => {
  const modelBy: Record<string, (key: string) => Promise<unknown>> = {
    chat: async (apiKey) => {
      const { createOpenAICompatible } = await fetched(major, "@ai-sdk/openai-compatible");
      return createOpenAICompatible({ name: "sluice", baseURL: `${watch.url}/v1`, apiKey }).chatModel(model);
    },
    responses: async (apiKey) => {
      const { createOpenAI } = await fetched(major, "@ai-sdk/openai");
      return createOpenAI({ baseURL: `${watch.url}/v1`, apiKey }).responses(model);
    },
    messages: async (apiKey) => {
      const { createAnthropic } = await fetched(major, "@ai-sdk/anthropic");
      return createAnthropic({ baseURL: `${watch.url}/v1`, apiKey })(model);
    },
  };

  // The AI SDK decides by the status alone: it retries a 429 twice, whatever the headers and the body say.
  test.each(refusals.flatMap((refusal) => Object.keys(modelBy).map((protocol) => [protocol, refusal] as const)))(
    "by %s asks three times in six seconds, and says why: %s",
    async (protocol, refusal) => {
      const { generateText } = await fetched(major, "ai");
      const asked = { model: await modelBy[protocol]!(keys[refusal]), prompt };
      const asking = async (more: object) => generateText({ ...asked, ...more });
      const error = await errorFrom(asking({}));
      expect(error?.message).toMatch(why[refusal]);
      expect(statuses()).toEqual([429, 429, 429]);
      watch.asked.length = 0;
      expect((await errorFrom(asking({ maxRetries: 0 })))?.message).toMatch(why[refusal]);
      expect(statuses()).toEqual([429]);
    },
  );
});

describe("LangChain for JS", () => {
  const chatBy: Record<string, (apiKey: string) => Promise<{ invoke(prompt: string): Promise<unknown> }>> = {
    chat: async (apiKey) => openai({ useResponsesApi: false, apiKey }),
    responses: async (apiKey) => openai({ useResponsesApi: true, apiKey }),
    messages: async (apiKey) => {
      const { ChatAnthropic } = await fetched("langchain", "@langchain/anthropic");
      return new ChatAnthropic({ model, apiKey, anthropicApiUrl: watch.url, maxTokens: 64 });
    },
  };
  async function openai(more: object) {
    const { ChatOpenAI } = await fetched("langchain", "@langchain/openai");
    return new ChatOpenAI({ model, configuration: { baseURL: `${watch.url}/v1` }, ...more });
  }

  test.each(refusals.flatMap((refusal) => Object.keys(chatBy).map((protocol) => [protocol, refusal] as const)))(
    "by %s asks once, and says why: %s",
    async (protocol, refusal) => {
      const chat = await chatBy[protocol]!(keys[refusal]);
      expect((await errorFrom(chat.invoke(prompt)))?.message).toMatch(why[refusal]);
      expect(statuses()).toEqual([429]);
    },
  );
});

/** How long a test of opencode may take: opencode retries after every 429, and waits longer each time. */
const opencode_ms = 300_000;

test.each(refusals)(
  "opencode asks for a minute or two by each protocol, and then says why: %s",
  async (refusal) => {
    const ended = Object.keys(providers).map(async (name) => {
      const protocol = name as keyof typeof providers;
      const own = watched({ url: service.url });
      try {
        const to = { url: own.url, key: keys[refusal], model, protocol, limit_ms: opencode_ms - 10_000 };
        return { ...(await runOpencode(folders.opencode!, to)), asked: own.asked };
      } finally {
        own.stop();
      }
    });
    for (const { code, shown, asked } of await Promise.all(ended)) {
      expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([429]));
      expect(asked.length).toBeLessThanOrEqual(12);
      expect(code).not.toBe(0);
      expect(shown).toMatch(why[refusal]);
    }
  },
  opencode_ms,
);
