/**
 * Only the files of the dialects (the differences among engines) contain the names of engines in code. All other code
 * reads the fields of the dialects' table.
 */
import { expect, test } from "bun:test";
import { dialectNames } from "../../src/core/protocol/dialects.ts";
import type { Tree } from "./source.ts";
import { engineBranches } from "./walls.ts";

const names = dialectNames.filter((name) => name !== "generic");
const made = (code: string, path = "src/core/usage/a.ts"): Tree => new Map([[path, code]]);

test("no code outside the dialects' files compares with an engine's name, or branches on its dialect", async () => {
  const paths = [...new Bun.Glob("src/**/*.ts").scanSync()].filter((path) => !path.endsWith(".d.ts"));
  const house = new Map(await Promise.all(paths.map(async (path) => [path, await Bun.file(path).text()] as const)));
  expect(engineBranches(house, names)).toEqual([]);
});

test.each([
  'export const a = (engine: string) => engine === "vllm";',
  'export const a = (engine: string) => "llama.cpp" !== engine;',
  'export function a(engine: string) { switch (engine) { case "ollama": return 1; } return 2; }',
  'export const a = (url: string) => url.includes("openrouter");',
  "export const a = (dialect: unknown, other: unknown) => dialect === other;",
  "export const a = (up: { dialect: { mark: string } }, other: string) => up.dialect.mark === other;",
  "export const a = (up: { dialect: unknown }) => up.dialect === dialects.vllm;",
  "export const a = () => dialects.groq.cap;",
  "export const a = (url: string) => /api\\.mistral\\.ai/.test(url);",
])("the wall stands against %s", (code) => {
  expect(engineBranches(made(code), names)).toHaveLength(1);
  expect(engineBranches(made(code, "src/core/protocol/dialects/rows.ts"), names)).toEqual([]);
});

test.each([
  'export const makers = [["mistral", "mistralai"]];',
  "/** vLLM === the engine. */ export const a = 1;",
  'export const a = (protocol: string) => protocol === "anthropic-messages";',
  "export const a = (dialect?: { cap: string }) => (dialect === undefined ? null : dialect.cap);",
  "export const a = (one?: object) => one ?? dialects.generic;",
])("and lets %s through", (code) => {
  expect(engineBranches(made(code), names)).toEqual([]);
});
