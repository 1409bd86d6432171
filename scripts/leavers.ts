// `npm run leavers -- --engine http://127.0.0.1:8000/v1 --model NAME`: clients of all three protocols leave in the
// middle of responses. They use a node of this checkout in front of a real engine (vLLM, SGLang, llama.cpp) that has no
// other clients. Prints three numbers of tokens side by side:
// - those that the clients were charged
// - those that the engine generated, by its metrics
// - those that the clients had received, counted by the engine's /tokenize
//
// `npm run test:clients -- leavers` does the same with a vLLM that it starts itself.

import { parseArgs } from "node:util";
import { type UpstreamProtocol, upstreamProtocols } from "../src/core/upstream/codecs.ts";
import { leaveAll, shownOf, summaryOf } from "../test/clients/leavers/leaving.ts";

const questions = [
  "Tell the story of a lock keeper, in many words.",
  "Write a function that sorts a list, and explain it.",
  "用中文讲一个关于运河的故事。",
  "Расскажи длинную историю о реке.",
];
const usage =
  `usage: npm run leavers -- --engine URL --model NAME [--protocol ${upstreamProtocols.join("|")}] [--key KEY] ` +
  "[--question TEXT]… [--rounds N] [--characters N] [--seed S]";

const { values } = parseArgs({
  options: {
    engine: { type: "string" },
    model: { type: "string" },
    protocol: { type: "string", default: "openai-chat" },
    key: { type: "string", default: "none" },
    question: { type: "string", multiple: true, default: questions },
    rounds: { type: "string", default: "40" },
    characters: { type: "string", default: "2000" },
    seed: { type: "string", default: "1" },
  },
});
const { engine, model, key } = values;
const protocol = upstreamProtocols.find((one): one is UpstreamProtocol => one === values.protocol);
const [rounds, characters_max, seed] = [values.rounds, values.characters, values.seed].map(Number) as [
  number,
  number,
  number,
];
if (!engine || !model || !protocol || !(rounds >= 1) || !(characters_max >= 1) || !Number.isInteger(seed)) {
  console.error(usage);
  process.exit(2);
}
const all = await leaveAll(
  { engine, name: model, key, protocols: [protocol] },
  { rounds, characters_max, seed, questions: values.question, taught: values.question },
  (one) => console.log(shownOf(one)),
);
for (const isWhole of [true, false]) {
  const some = all.filter((one) => one.isWhole === isWhole);
  console.log(`${isWhole ? "whole" : "left"}: ${summaryOf(some)}`);
}
