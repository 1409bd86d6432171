// Fuzzes sluice.yaml: any bytes give a configuration, or errors that each take one line, and never contain a secret.

import fc from "fast-check";
import { loadConfiguration } from "../../src/config/load.ts";
import { ConfigurationError } from "../../src/config/problem.ts";
import { affordable } from "./cost.ts";
import { type Fuzzer, law } from "./fuzzer.ts";
import { mutated, seedsOf } from "./mutation.ts";

const secret = "hunter2-hunter2";
const ms_per_kb = 50;
const lines_max = 21;
const pieces = [
  "\n",
  "  ",
  "\t",
  ": ",
  "- ",
  "? ",
  "[",
  "]",
  "{",
  "}",
  "&a ",
  "*a",
  "*p",
  "<<: *m",
  "!!binary ",
  "!",
  "%TAG",
  "---\n",
  "|\n",
  "'",
  '"',
  "#",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: that is how a file names a variable
  "${MAIN_KEY}",
  "${",
  "\0",
  "\ufeff",
  "null",
  "1e999",
  ".nan",
  "__proto__: ",
  "[*a, *a]",
];
const text = mutated(seedsOf("catalog"), pieces).map((words) => new TextEncoder().encode(words));

export const catalogFuzzer: Fuzzer = {
  name: "catalog",
  properties: {
    "any file is a configuration, or some lines that say what is wrong": law(
      fc.oneof({ weight: 9, arbitrary: text }, { weight: 1, arbitrary: fc.uint8Array() }),
      (bytes) => {
        const env = { MAIN_KEY: secret, VLLM_KEY: secret };
        const readFile = (path: string) => (path === "./sluice.yaml" ? bytes : null);
        const found = affordable(bytes.length, ms_per_kb, () => loadConfiguration({ env, readFile }));
        if (!(found instanceof ConfigurationError)) return;
        const { problems, message } = found;
        if (problems.length < 1 || problems.length > lines_max) throw new Error(`${problems.length} problems`);
        const odd = problems.find((line) => /\p{Cc}/u.test(line) || !line.startsWith("./sluice.yaml"));
        if (odd !== undefined) throw new Error(odd);
        if (message.includes(secret)) throw new Error(`it shows a secret: ${message}`);
      },
    ),
  },
};
