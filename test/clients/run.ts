// `npm run test:clients`: clients and engines that need more than npm. No part of `npm test`, because they fetch packages
// of Python, and the engine is compiled on the spot. Closes with the line `N passed, N failed, N skipped`.
//
//   npm run test:clients                    the official openai SDK for Python, in front of the service
//   npm run test:clients -- anthropic       the official Anthropic SDK for Python, in front of the service
//   npm run test:clients -- frameworks      the OpenAI Agents SDK and LangChain for Python, in front of the service
//   npm run test:clients -- claude          Claude Code, from npm, in front of the service; and what it takes of a plan
//   npm run test:clients -- codex           Codex, from npm, in front of the service
//   npm run test:clients -- pi              pi, from npm, in front of the service, by each of the three protocols
//   npm run test:clients -- ai              the AI SDK and the OpenAI Agents SDK, from npm, in front of the service
//   npm run test:clients -- overflow        LiteLLM and LangChain for Python, by all three protocols: an input too long
//   npm run test:clients -- refusals        Node, Python and curl, refused while they write a large body
//   npm run test:clients -- engine          llama.cpp's own server behind the service
//   npm run test:clients -- transformers    the server that comes with transformers behind the service (3 GB to fetch)

import { type Counts, close } from "../../scripts/counts.ts";
import { aiCounts } from "./ai/run.ts";
import { claudeCounts } from "./claude-code/run.ts";
import { codexCounts } from "./codex/run.ts";
import { engineCounts } from "./engine/run.ts";
import { piCounts } from "./pi/run.ts";
import { overflowCounts } from "./python/overflow.ts";
import { anthropicCounts, frameworkCounts, pythonCounts } from "./python/run.ts";
import { refusalsCounts } from "./refusals/run.ts";
import { transformersCounts } from "./transformers/run.ts";

const runs: Record<string, () => Promise<Counts>> = {
  python: pythonCounts,
  anthropic: anthropicCounts,
  frameworks: frameworkCounts,
  claude: claudeCounts,
  codex: codexCounts,
  pi: piCounts,
  ai: aiCounts,
  overflow: overflowCounts,
  refusals: refusalsCounts,
  engine: engineCounts,
  transformers: transformersCounts,
};

async function main(): Promise<void> {
  const [suite = "python", ...more] = process.argv.slice(2);
  const run = runs[suite];
  if (!run || more.length > 0) {
    console.error(`What to test is one of: ${Object.keys(runs).join(", ")}.`);
    process.exit(2);
  }
  let counts: Counts = { passed: 0, failed: 1, skipped: 0 };
  try {
    counts = await run();
  } catch (failure) {
    console.error(failure instanceof Error ? failure.message : failure);
  }
  await close(counts);
}

await main();
