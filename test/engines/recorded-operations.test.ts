/**
 * Replays recorded responses of real engines for embeddings, rankings, completions and infill
 * (test/engines/recorded-operations, made by `npm run test:clients -- operations`): vectors, scores, texts and counts
 * reach the client as they were recorded, and errors about the input are returned as the client's errors. Each recorded
 * request is sent as a client would send it.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type OperationQuestion, operationQuestions } from "../clients/engines/operation-questions.ts";
import {
  type OperationRecording,
  operationRecordings,
  type RecordedOperation,
} from "../clients/engines/record-operations.ts";
import { errorOf, eventsOf, startService } from "../harness/engine.ts";

const recordings = readdirSync(operationRecordings)
  .filter((name) => name.endsWith(".json"))
  .map((name) => JSON.parse(readFileSync(join(operationRecordings, name), "utf8")) as OperationRecording);

/** The engine's response to the next request; null once that request has arrived. */
let saying: RecordedOperation | null = null;
const engine = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch() {
    const said = saying;
    saying = null;
    if (!said) return new Response("asked twice", { status: 500 });
    return new Response(said.body, { status: said.status, headers: { "content-type": said.contentType } });
  },
});

const kinds = { embeddings: "embedding", rerank: "rerank", completions: "completion" } as const;
const pathOf = {
  embeddings: "/v1/embeddings",
  rerank: "/v1/rerank",
  completions: "/v1/completions",
  infill: "/v1/completions",
};
const dialectOf = (name: string) => (name === "infinity" ? "generic" : name);
const modelOf = (name: string, operation: string) =>
  `acme/${name}-${operation === "infill" ? "completions" : operation}`;
const url = `http://127.0.0.1:${engine.port}/v1`;

const upstreams = recordings.map(
  ({ engine: name }) => `\n  "${name}": { url: "${url}", protocol: openai-chat, dialect: ${dialectOf(name)} }`,
);
const entries = recordings.flatMap(({ engine: name }) =>
  Object.entries(kinds).map(
    ([operation, kind]) => `
  - id: ${modelOf(name, operation)}
    kind: ${kind}
    created: 1790000000
    context_window: 1000000
    prices: { input: 0.1${kind === "completion" ? ", output: 0.1" : ""} }
    routes: [{ upstream: "${name}", model: recorded }]`,
  ),
);
const service = await startService({
  hasKinds: true,
  upstream: `dialect: generic${upstreams.join("")}`,
  extraModels: entries.join(""),
});
afterAll(async () => {
  await service.stop();
  await engine.stop(true);
}, 60_000);

/** Recorded requests that the service never sends in this form, each with the reason. */
const otherwise: Record<string, string> = {
  "objects with texts": "they are sent as texts",
  suffix: "it is sent to /infill, or refused",
  "with other files": "completions have none",
  "nothing after": "it is a completion",
};

/** The client's request for which the service sends this recorded request to the engine. */
function requestOf(operation: string, { body }: OperationQuestion): Record<string, unknown> {
  if (operation !== "infill") return body;
  const { input_prefix: prompt, input_suffix, stream = false } = body;
  return { prompt, suffix: input_suffix || "b", max_tokens: 8, temperature: 0, stream };
}

interface Usage {
  prompt_tokens: number;
  completion_tokens?: number;
}
interface Answer {
  data?: { index: number; embedding: unknown }[];
  results?: { index: number; relevance_score: number }[];
  choices?: { text: string; logprobs: unknown; finish_reason: string | null }[];
  usage?: Usage | null;
}

describe.each(recordings.map((one) => [one.engine, one] as const))("%s", (name, { answers }) => {
  for (const answer of answers) {
    const { operation, question } = answer;
    const found = operationQuestions[operation].find((one) => one.name === question);
    test(`${operation}: ${question}`, async () => {
      if (!found) throw new Error("a recorded answer to a question that is not asked any more");
      if (question in otherwise) return;
      const body = requestOf(operation, found);
      saying = answer;
      const response = await service.post(pathOf[operation], { ...body, model: modelOf(name, operation) });
      // If the request did not reach the engine, the error must be the service's own.
      if (saying !== null) return expectOwnRefusal(response);
      if (answer.status !== 200) return expectRefusal(response, answer);
      if (question === "dimensions" && !answer.body.includes(shortened)) return expectUnshortened(response);
      if (answer.contentType.includes("event-stream")) return expectStream(response, answer);
      expectWhole(response.status, (await response.json()) as Answer, JSON.parse(answer.body), name);
    });
  }
});

async function expectOwnRefusal(response: Response): Promise<void> {
  expect(response.status).toBe(400);
  expect(["invalid_value", "missing_field", "unsupported_feature"]).toContain((await errorOf(response)).code);
}

async function expectRefusal(response: Response, { question, status }: RecordedOperation): Promise<void> {
  const { code, message } = await errorOf(response);
  const isOperators = question === "unknown model" || (status >= 500 && !question.includes("too long"));
  if (question.includes("too long")) expect([response.status, code]).toEqual([400, "context_length_exceeded"]);
  else if (isOperators) expect([response.status, code]).toEqual([503, "upstream_unavailable"]);
  else expect([response.status, code]).toEqual([400, "invalid_value"]);
  expect(message).not.toContain("recorded");
}

/** The end of infinity's vector when it is shortened to eight numbers. */
const shortened = "0.056309737265110016]";

async function expectUnshortened(response: Response): Promise<void> {
  expect([response.status, (await errorOf(response)).code]).toEqual([400, "unsupported_feature"]);
}

function expectWhole(status: number, answer: Answer, said: Answer & Record<string, unknown>, name: string): void {
  expect(status, JSON.stringify(answer)).toBe(200);
  if (said.data) expect(answer.data!.map(vectorOf)).toEqual(said.data.map(vectorOf));
  if (said.results) expect(answer.results!.map(scoreOf)).toEqual(said.results.map(scoreOf));
  if (said.choices) expect(answer.choices!.map(choiceOf)).toEqual(said.choices.map(choiceOf));
  if ("tokens_evaluated" in said) {
    expect(answer.choices![0]!.text).toBe(said.content as string);
    expect(answer.usage).toMatchObject({
      prompt_tokens: said.tokens_evaluated,
      completion_tokens: said.tokens_predicted,
    });
    return;
  }
  if (name === "infinity") expect(answer.usage!.prompt_tokens).toBeGreaterThan(0);
  else expect(answer.usage!.prompt_tokens).toBe(said.usage!.prompt_tokens);
  if (said.choices) expect(answer.usage!.completion_tokens).toBe(said.usage!.completion_tokens!);
}

const vectorOf = ({ index, embedding }: { index: number; embedding: unknown }) => ({ index, embedding });
const scoreOf = ({ index, relevance_score }: { index: number; relevance_score: number }) => ({
  index,
  relevance_score,
});
const choiceOf = ({ text, logprobs, finish_reason }: NonNullable<Answer["choices"]>[number]) => ({
  text,
  logprobs: logprobs ?? null,
  finish_reason,
});

async function expectStream(response: Response, { body }: RecordedOperation): Promise<void> {
  expect(response.status).toBe(200);
  const events = await eventsOf(response);
  expect(events.filter((event) => event === "[DONE]")).toHaveLength(1);
  const chunks = events.filter((event) => event !== "[DONE]").map((event) => JSON.parse(event) as Answer);
  const said = body
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)) as Answer & { content?: string; tokens_predicted?: number });
  const textIn = (list: readonly (Answer & { content?: string })[]) =>
    list.map(({ choices, content }) => content ?? choices?.map(({ text }) => text).join("") ?? "").join("");
  expect(textIn(chunks)).toBe(textIn(said));
  const { usage } = chunks.at(-1)!;
  const reported = said.findLast((one) => one.usage)?.usage;
  if (usage && reported) expect(usage).toMatchObject({ ...pick(reported) });
}

const pick = ({ prompt_tokens, completion_tokens }: Usage) => ({ prompt_tokens, completion_tokens });
