/** management.json: what programs that administer may rely on. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Errors } from "typebox/value";
import { renderManagement } from "../../../src/admin/http/document.ts";
import { verbs } from "../../../src/admin/management/verbs.ts";
import { clientFaultCodes, faultCatalogue, managementFaultCodes } from "../../../src/core/inference/fault.ts";
import { decode, encode } from "../../../src/core/schema/codec.ts";
import { docsPage } from "../../../src/features/openapi/page.ts";

const root = join(import.meta.dir, "../../..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const text = renderManagement(version);

test("the checked-in management.json is what the code says", () => {
  if (readFileSync(join(root, "contract/management.json"), "utf8") !== text)
    throw new Error(
      "management.json and the code differ: npm run sluice -- openapi --management --write contract/management.json",
    );
});

test("an independent validator accepts it as OpenAPI 3.1", async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(text));
  expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
});

test("every example is what its schema says, and asks for what is taken", () => {
  for (const { name, answers, input, example } of verbs) {
    const json = encode(answers, example.answer);
    expect([name, [...Errors(answers, json)]]).toEqual([name, []]);
    expect([name, [...Errors(input, example.takes)]]).toEqual([name, []]);
    expect([name, decode(answers, json)]).toEqual([name, example.answer]);
  }
});

test("its page shows it, and asks no other host", async () => {
  const html = await (await docsPage({ title: "Sluice management", document: "management.json" })()).text();
  expect(html).toContain("<title>Sluice management</title>");
  const loaded = [...html.matchAll(/\b(?:src|href|data-url)=["']([^"']*)["']/g)].map(([, url]) => url);
  expect(loaded.sort()).toEqual(["docs/scalar.js", "management.json"]);
});

test("clients of the API meet none of its faults, but for those with two statuses", () => {
  const published = readFileSync(join(root, "contract/openapi.json"), "utf8");
  for (const code of managementFaultCodes.filter((one) => !("management" in faultCatalogue[one]))) {
    expect(clientFaultCodes).not.toContain(code);
    expect(published).not.toContain(`"${code}"`);
  }
});
