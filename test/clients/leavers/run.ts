// Tests clients that leave the long responses of a real vLLM, with and without its parser for reasoning, in its three
// protocols.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Counts } from "../../../scripts/counts.ts";
import { upstreamProtocols } from "../../../src/core/upstream/codecs.ts";
import { kinds } from "../../core/usage/leavers.ts";
import { onlyPinned } from "../edition.ts";
import { startVllm, vllmVersion } from "../engines/engines.ts";
import { folder, made } from "../engines/models.ts";
import { errorOf, type Left, leaveAll, shownOf, summaryOf } from "./leaving.ts";

/**
 * The stories of stories.py: the key is the name in a question, the value the sentences of which its responses consist.
 */
const stories = {
  "an English story": kinds.prose!,
  "me code": kinds.code!,
  "a German story": kinds.German!,
  "a Russian story": kinds.Russian!,
  "a Chinese story": kinds.Chinese!,
};
const tales = Object.keys(stories).map((kind) => `Tell ${kind}.`);
const thinking = tales.map((question) => `Think first. ${question}`);

interface Way {
  name: string;
  options: readonly string[];
  error_max: number;
}

/**
 * The two ways to run the engine, each with the `error_max` that docs/metering.md promises. With the reasoning parser
 * (`--reasoning-parser`), every response here is reasoning only, from which the route learns nothing about the model's
 * tokens.
 */
const ways: readonly Way[] = [
  { name: "thinking told apart", options: ["--reasoning-parser", "qwen3"], error_max: 0.05 },
  { name: "thinking in the text", options: [], error_max: 0.15 },
];
const rounds = 12;

export const leaversSuite = onlyPinned(`vllm ${vllmVersion}`, async () => {
  const model = await storyteller();
  const sum: Counts = { passed: 0, failed: 0, skipped: 0 };
  for (const way of ways) {
    const all = await leaversOf(way, model);
    for (const protocol of upstreamProtocols) {
      const some = all.filter(({ engine, isWhole }) => engine === protocol && !isWhole);
      const error = errorOf(some);
      const isRight = some.length > 0 && Math.abs(error) <= way.error_max;
      sum[isRight ? "passed" : "failed"] += 1;
      console.log(`${way.name}, ${protocol}: ${summaryOf(some)}`);
    }
  }
  return sum;
});

async function leaversOf({ options }: Way, model: string): Promise<Left[]> {
  const server = await startVllm("stories", model, ["--max-model-len", "4096", ...options]);
  try {
    const place = { engine: `${server.root}/v1`, name: "stories", key: "none", protocols: upstreamProtocols };
    const how = { rounds, characters_max: 3_000, seed: 1, questions: [...tales, ...thinking], taught: tales };
    return await leaveAll(place, how, (one) => console.log(shownOf(one)));
  } finally {
    await server.stop();
  }
}

async function storyteller(): Promise<string> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "stories.json"), JSON.stringify(stories));
  return made({
    name: "stories",
    recipe: join(import.meta.dir, "stories.py"),
    reads: [join(folder, "stories.json"), join(import.meta.dir, "../engines/model.py")],
    note: "teaching a tiny model to tell stories, once; it takes some minutes",
  });
}
