/**
 * The published statements about the service hold for the running one on its default catalog: the request examples of
 * the contract, and the names of log events in docs/operating.md.
 */
import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defaultModels } from "../../../src/config/models.ts";
import type { Example } from "../../../src/core/operations/operation.ts";
import { exampleModel } from "../../../src/features/openapi/contract-model.ts";
import { operations } from "../../../src/node/operations.ts";
import { kindModels, startService } from "../../harness/engine.ts";
import { startSluice } from "../../harness/sluice.ts";

const service = await startSluice();
/** A service whose models are of kinds other than chat; the default catalog has chat models only. */
const ofKinds = await startService({ hasKinds: true, engine: { directives: "" } });
afterAll(async () => {
  await service.stop();
  await ofKinds.stop();
}, 60_000);

const models = defaultModels();
const isOfChat = ({ kind = "chat" }: Example) => kind === "chat";

for (const operation of operations) {
  for (const example of operation.examples) {
    test(`${operation.operationId}: ${example.summary}`, async () => {
      const model = isOfChat(example)
        ? exampleModel(models, example)!
        : kindModels[example.kind as keyof typeof kindModels];
      const { path, headers, body } = example.request(model);
      const response = await (isOfChat(example) ? service : ofKinds).fetch(path, {
        method: operation.method.toUpperCase(),
        headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        // Sends a key only to operations that say that they need one.
        ...(operation.scope === null ? { key: null } : {}),
      });
      expect([response.status, response.headers.get("content-type")?.split(";")[0]]).toEqual([
        example.status,
        example.contentType,
      ]);
      expect((await response.text()).length).toBeGreaterThan(0);
    });
  }
}

test("the running service publishes the checked-in contract", async () => {
  const served = await (await service.fetch("/openapi.json", { key: null })).text();
  expect(served).toBe(await Bun.file(new URL("../../../contract/openapi.json", import.meta.url)).text());
});

const root = join(import.meta.dir, "../../..");
const page = readFileSync(join(root, "docs/operating.md"), "utf8");
/** The names that begin each item below a heading of the page. */
const namesUnder = (heading: string) =>
  [
    ...page
      .split(`\n${heading}\n`)[1]!
      .split(/\n##+ /)[0]!
      .matchAll(/^- (`\w+`(?:, `\w+`)*):/gm),
  ].flatMap(([, names]) => names!.replaceAll("`", "").split(", "));

test("every event of the log stands on the page with its level", () => {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const source = files.map((name) => readFileSync(join(root, "src", name), "utf8")).join("\n");
  const told = [...source.matchAll(/\bevent\(\s*"(info|warn|error)",\s*"(\w+)"/g)].map(
    ([, level, name]) => `${name} ${level}`,
  );
  const outages = [...source.matchAll(/\boutage\("(\w+)"\)/g)].map(([, name]) => `${name} warn`);
  const written = Object.entries({ Errors: "error", Warnings: "warn", Information: "info" }).flatMap(
    ([heading, level]) => namesUnder(`### ${heading}`).map((name) => `${name} ${level}`),
  );
  expect(written.sort()).toEqual([...new Set([...told, ...outages])].sort());
});
