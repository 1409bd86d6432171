/**
 * Paths of other APIs: each is refused in words that say what this service lacks, in the form of its own protocol, and never
 * with a hint that would not work.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { unservedApis, unservedAt } from "../../../src/core/operations/unserved.ts";
import { operations } from "../../../src/node/operations.ts";
import { startService } from "../../harness/engine.ts";

setDefaultTimeout(60_000);

const service = await startService();
afterAll(() => service.stop());

/** The paths that a package asks for, as its source has them, with `{id}` for what it fills in. */
function pathsIn(name: string): string[] {
  const folder = dirname(Bun.resolveSync(`${name}/package.json`, import.meta.dir));
  const found = new Set<string>();
  for (const file of new Bun.Glob("{resources,internal,lib}/**/*.mjs").scanSync(folder)) {
    const source = readFileSync(join(folder, file), "utf8");
    const calls = /(?:\.(?:get|post|put|patch|delete|getAPIList)\(\s*|\bpath\s*)(?:'([^'`]+)'|`([^`]+)`)/g;
    for (const [, plain, template] of source.matchAll(calls)) {
      const path = (plain ?? template ?? "").split("?")[0]!.replaceAll(/\$\{[^}]+\}/g, "{id}");
      if (/^\/[a-z]/.test(path)) found.add(path.startsWith("/v1/") ? path : `/v1${path}`);
    }
  }
  return [...found].sort();
}

const served = new Set(operations.map(({ path }) => path));
const isServed = (path: string) => served.has(path);
/** Fills in ids of the form that the API gives them. */
const filled = (path: string) =>
  path.replace("/chat/completions/{id}", "/chat/completions/chatcmpl-1").replaceAll("{id}", "x");

describe.each([
  ["openai", 200, "error"],
  ["@anthropic-ai/sdk", 150, "messages"],
] as const)("the SDK %s", (name, paths_min, form) => {
  const paths = pathsIn(name);
  const unserved = paths.filter((path) => !isServed(path));

  test("has no path that is neither served nor refused in words", () => {
    expect(paths.length).toBeGreaterThan(paths_min);
    expect(paths.length - unserved.length).toBeGreaterThan(3);
    expect(unserved.filter((path) => unservedAt(filled(path)) === null)).toEqual([]);
  });

  test("is refused with what the service lacks, in its own form of an error", async () => {
    const headers: Record<string, string> = form === "messages" ? { "anthropic-version": "2023-06-01" } : {};
    for (const path of unserved) {
      const asked = filled(path);
      const answer = await service.fetch(asked, { method: "POST", body: "{}", headers, key: null });
      const body = (await answer.json()) as Refusal;
      const itsForm = body.type === "error" ? "messages" : "error";
      expect([asked, answer.status, codeIn(body), itsForm]).toEqual([asked, 404, "route_not_found", form]);
      expect(body.error.message).toStartWith(`There is nothing at '${asked}': this service `);
      expect(body.error.message).not.toMatch(/probably|openapi/);
    }
  });
});

interface Refusal {
  type?: string;
  error: { message: string; code?: string; details?: { error_code?: string } };
}
const codeIn = ({ error }: Refusal) => error.code ?? error.details?.error_code;

describe("the table", () => {
  const rows = unservedApis.flatMap(({ name, onlyMessages, rows }) =>
    rows.map((row) => ({ ...row, name, onlyMessages: onlyMessages === true })),
  );

  test("has each path once, and none that is served, under whatever base URL", () => {
    expect(new Set(rows.map(({ path }) => path)).size).toBe(rows.length);
    for (const path of [...served].filter((path) => path !== "/").map((path) => path.replace("{id}", "acme/writer-1")))
      for (const base of ["", "/v1", "/api", "/openai", "/v1beta/openai", "/v1/chat/completions"])
        expect([base + path, unservedAt(base + path)]).toEqual([base + path, null]);
  });

  test("finds each of its paths, with and without /v1, once more below, and with a slash at its end", () => {
    for (const { path, lack } of rows) {
      const root = filled(path.replace("/…", ""));
      const below = path.endsWith("/…") ? [`${root}/x`, `${root}/x/y`] : [];
      for (const asked of [root, ...below])
        for (const written of [asked, `/v1${asked}`, `/v1/v1${asked}`, `${asked}/`])
          expect([written, unservedAt(written)?.lack]).toEqual([written, lack]);
    }
  });

  test("names nothing as nearest that is not served, and to an SDK nothing of another protocol", () => {
    for (const { path, name, nearest = "" } of rows) {
      const named = [...nearest.matchAll(/'(\/[^']+)'/g)].map(([, one]) => one!);
      expect([path, named.filter((one) => one !== "/v1" && !isServed(one))]).toEqual([path, []]);
      if (name === "Anthropic") expect(nearest).not.toMatch(/chat|responses/);
      if (name === "OpenAI") expect(nearest).not.toContain("/v1/messages");
    }
  });
});

test("what has two APIs is refused in the form of its client, and Gemini's way to a model is no other method", async () => {
  const messages = await service.fetch("/v1/files", { headers: { "anthropic-version": "2023-06-01" } });
  expect(((await messages.json()) as Refusal).error).toHaveProperty("details.error_code", "route_not_found");
  const other = (await (await service.fetch("/v1/files")).json()) as Refusal;
  expect(other.error.code).toBe("route_not_found");
  for (const version of ["v1", "v1beta"]) {
    const path = `/${version}/models/gemini-3:generateContent`;
    const answer = await service.fetch(path, { method: "POST", body: "{}" });
    expect([answer.status, ((await answer.json()) as Refusal).error.message]).toEqual([
      404,
      `There is nothing at '${path}': this service does not speak the protocol of Gemini. It speaks chat completions at '/v1/chat/completions', Messages at '/v1/messages' and Responses at '/v1/responses'.`,
    ]);
  }
  const method = await service.fetch("/v1/models/acme/writer-1", { method: "POST", body: "{}" });
  expect(method.status).toBe(405);
});
