/** Reads a configuration from text instead of a file. */
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Configuration } from "../../src/config/configuration.ts";
import { loadConfiguration } from "../../src/config/load.ts";
import { ConfigurationError } from "../../src/config/problem.ts";

export type Variables = Record<string, string | undefined>;

type ReadFile = Parameters<typeof loadConfiguration>[0]["readFile"];

/** Loads a configuration file with this text; `readOther` reads the files that it and the variables name. */
export function load(
  text: string | null,
  env: Variables = {},
  readOther: ReadFile = () => null,
): Configuration | ConfigurationError {
  const bytes = text === null ? null : new TextEncoder().encode(text);
  const path = env.SLUICE_CONFIG ?? "./sluice.yaml";
  const readFile: ReadFile = (asked) => (asked === path ? bytes : readOther(asked));
  return loadConfiguration({ env, readFile });
}

export function configured(...given: Parameters<typeof load>): Configuration {
  const result = load(...given);
  if (result instanceof ConfigurationError) throw result;
  return result;
}

/** The errors of a configuration file, without the file's name. */
export function problemsOf(text: string | null, env: Variables = {}): string[] {
  const result = load(text, env);
  if (!(result instanceof ConfigurationError)) return [];
  return result.problems.map((problem) => problem.replace(/^\.\/sluice\.yaml:? ?/, ""));
}

/** Expects that a configuration file is refused with one error, which contains this text. */
export function expectProblem(says: string, text: string | null, env: Variables = {}): void {
  expect(problemsOf(text, env)).toEqual([expect.stringContaining(says)]);
}

/** A configuration file with one upstream and one model, whose fields can be replaced. */
export function withModel(fields: Record<string, unknown> = {}, more = ""): string {
  const model = {
    id: "acme/writer-1",
    created: 1790000000,
    context_window: 8192,
    prices: { input: 0.001, output: 0.002 },
    routes: [{ upstream: "main", model: "writer" }],
    ...fields,
  };
  const metering = more.includes("metering:") ? "" : "metering: { currency: USD }\n";
  return `upstreams: { main: { url: "http://127.0.0.1:9000/v1" } }\nmodels: [${JSON.stringify(model)}]\n${metering}${more}`;
}

export const root = join(import.meta.dir, "..", "..");
export const example = readFileSync(join(root, "sluice.example.yaml"), "utf8");

/** An engine in the form in which `sluice init` gets it. */
export const engineAt = (url: string, apiKey: string | null = null, name = "main") => {
  return { name, url, apiKey, keyVariable: "SLUICE_UPSTREAM_KEY" };
};
