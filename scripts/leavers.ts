// `npm run leavers -- --engine http://127.0.0.1:8000/v1 --model NAME`: clients that leave in mid-answer, at a node of this
// checkout before a real engine. Prints what they were charged beside the tokens of the text that they had read, as the
// engine's own /tokenize counts them (vLLM, SGLang, llama.cpp). What was on its way to them when they left is charged, too.

import { parseArgs } from "node:util";
import type { RequestReceipt } from "../src/core/operations/receipt-shape.ts";
import { chanceOf } from "../test/faults/chance.ts";
import { type Sluice, startSluice } from "../test/harness/sluice.ts";
import { until } from "../test/harness/until.ts";

const questions = [
  "Count three times.",
  "Tell the story of a lock keeper, in many words.",
  "Write a function that sorts a list, and explain it.",
  "用中文讲一个关于运河的故事。",
  "Расскажи длинную историю о реке.",
];
const model = "engine/model";
const usage =
  "usage: npm run leavers -- --engine URL --model NAME [--protocol openai-chat|openai-responses] [--key KEY] " +
  "[--rounds N] [--characters N] [--seed S]";

interface Left {
  isWhole: boolean;
  read: number;
  charged: number;
  source: string;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      engine: { type: "string" },
      model: { type: "string" },
      protocol: { type: "string", default: "openai-chat" },
      key: { type: "string", default: "none" },
      rounds: { type: "string", default: "40" },
      characters: { type: "string", default: "2000" },
      seed: { type: "string", default: "1" },
    },
  });
  const { engine, model: name, protocol, key } = values;
  const [rounds, characters, seed] = [values.rounds, values.characters, values.seed].map(Number) as [
    number,
    number,
    number,
  ];
  if (!engine || !name || !(rounds >= 1) || !(characters >= 1) || !Number.isInteger(seed)) {
    console.error(usage);
    process.exit(2);
  }
  const tokensOf = counterAt(engine, name);
  const service = await startSluice({
    config: configTo(engine, name, protocol),
    env: { ENGINE_KEY: key },
    store: "pglite",
  });
  const chance = chanceOf(seed);
  const all: Left[] = [];
  try {
    for (let round = 0; round < rounds; round++) {
      const one = await leave(
        service,
        chance.pick(questions),
        chance.next() < 0.3 ? null : chance.below(characters),
        tokensOf,
      );
      all.push(one);
      console.log(`${one.isWhole ? "whole" : "left "}  ${one.read} read, ${one.charged} charged (${one.source})`);
    }
  } finally {
    service.signal("SIGKILL");
    await service.exited;
  }
  for (const isWhole of [true, false]) {
    const some = all.filter((one) => one.isWhole === isWhole);
    const sum = (of: (one: Left) => number) => some.reduce((total, one) => total + of(one), 0);
    const share = (sum(({ charged }) => charged) / sum(({ read }) => read) - 1) * 100;
    console.log(`${some.length} ${isWhole ? "whole" : "left"}: ${share.toFixed(1)} % of what was read beside it`);
  }
}

function configTo(engine: string, name: string, protocol: string): string {
  return `upstreams:
  engine: { url: "${engine}", protocol: ${protocol}, api_key: "\${ENGINE_KEY}" }
models:
  - id: ${model}
    created: 1790000000
    context_window: 32768
    max_output_tokens: 4096
    capabilities: [reasoning]
    prices: { input: 1, output: 100 }
    routes: [{ upstream: engine, model: "${name}" }]
`;
}

/** The tokens of a text, as the engine counts them. */
function counterAt(engine: string, name: string): (text: string) => Promise<number> {
  return async (text) => {
    const response = await fetch(new URL("/tokenize", engine), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: name, prompt: text, content: text, add_special_tokens: false }),
    });
    const { count, tokens } = (await response.json()) as { count?: number; tokens?: unknown[] };
    return count ?? tokens!.length;
  };
}

/** Reads so many characters, thinking included, and leaves; null: reads to the end. */
async function leave(
  service: Sluice,
  question: string,
  characters: number | null,
  tokensOf: (text: string) => Promise<number>,
): Promise<Left> {
  const leaving = new AbortController();
  const body = { model, messages: [{ role: "user", content: question }], stream: true, max_tokens: 1_000 };
  const response = await service.post("/v1/chat/completions", body, { signal: leaving.signal });
  const id = response.headers.get("x-service-request-id")!;
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let [frames, text, isWhole] = ["", "", false];
  while (characters === null || text.length < characters) {
    const { done, value } = await reader.read();
    isWhole = done;
    if (done) break;
    frames += decoder.decode(value, { stream: true });
    text = textOf(frames);
  }
  leaving.abort();
  let receipt = null as RequestReceipt | null;
  const isSettled = async () => {
    const found = await service.fetch(`/v1/service/requests/${id}`);
    receipt = found.status === 200 ? ((await found.json()) as RequestReceipt) : null;
    return receipt !== null && receipt.outcome !== "running";
  };
  await until(isSettled, 20_000, `the receipt of ${id}`);
  const { output_tokens, source } = receipt!.usage;
  return { isWhole, read: await tokensOf(text), charged: output_tokens, source };
}

function textOf(frames: string): string {
  const deltas = [...frames.matchAll(/^data: (\{.*\})$/gm)].flatMap(([, data]) => JSON.parse(data!).choices ?? []);
  return deltas
    .map(({ delta }) => `${delta?.reasoning_content ?? delta?.reasoning ?? ""}${delta?.content ?? ""}`)
    .join("");
}

await main();
