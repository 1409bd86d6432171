// Runs unmodified Python clients against the service and against its engine, and returns the outcome of each.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { has, modelOf, root, server } from "./place.ts";

const every = [
  { name: "openai", of: "embeddings" },
  { name: "langchain", of: "embeddings" },
  { name: "llama_index", of: "embeddings" },
  { name: "cohere", of: "rerank" },
  { name: "openai_completions", of: "completions" },
] as const;

export const pythonClients = every.filter(({ of }) => has(of)).map(({ name }) => name as string);

/** Returns the outcome of each client, by its name: `ok`, or the error. */
export async function pythonOutcomes({ url, key }: { url: string; key: string }): Promise<Record<string, string>> {
  const { OPERATION_PYTHON: python = "" } = process.env;
  const { stdout, output, code } = await command([python, join(import.meta.dir, "clients.py"), ...pythonClients], {
    limit_ms: 8 * 60_000,
    quiet: true,
    environment: {
      SLUICE_URL: url,
      SLUICE_KEY: key,
      ENGINE_ROOT: root,
      SLUICE_MODELS: JSON.stringify(Object.fromEntries(pythonModels((name) => modelOf(name)))),
      ENGINE_MODELS: JSON.stringify(Object.fromEntries(pythonModels((name) => server.models[name]))),
    },
  });
  if (code !== 0) throw new Error(output);
  return JSON.parse(stdout) as Record<string, string>;
}

function pythonModels<Value>(of: (operation: "embeddings" | "rerank" | "completions") => Value): [string, Value][] {
  return (["embeddings", "rerank", "completions"] as const).map((name) => [name, of(name)]);
}
