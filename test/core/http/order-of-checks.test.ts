/** A request that is wrong in every way gets the first error in the decided order; when that is fixed, the next one. */
import { afterAll, expect, test } from "bun:test";
import { plainModel, startService } from "../../harness/engine.ts";
import { newKey, newMember } from "../../harness/organizations.ts";

const service = await startService();
afterAll(() => service.stop(), 60_000);

test("a chat completion's checks come in their order", async () => {
  const { organization, key: whole } = await newMember(service, "unlimited");
  await service.json("org", "plan", organization, "--none");
  const { key: reader } = await newKey(service, organization, "--scopes", "models:read");
  const { key: narrow } = await newKey(service, organization, "--models", "acme/writer-1");
  const json = { "content-type": "application/json" };
  const wrong = { messages: [{ role: "user", content: "x" }], model: "acme/none", nonsense: 1 };
  const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } };
  const { nonsense: _, ...unknownModel } = wrong;
  const incapable = { ...unknownModel, model: plainModel, tools: [tool] };
  const { tools: __, ...unplanned } = incapable;
  const asked: [string, string, string | null, Record<string, string>, string][] = [
    ["method_not_allowed", "PUT", null, {}, "{"],
    ["missing_api_key", "POST", null, {}, "{"],
    ["missing_scope", "POST", reader, {}, "{"],
    ["invalid_content_type", "POST", narrow, { "content-type": "text/plain" }, "{"],
    ["invalid_json", "POST", narrow, json, "{"],
    ["unknown_field", "POST", narrow, json, JSON.stringify(wrong)],
    ["model_not_found", "POST", narrow, json, JSON.stringify(unknownModel)],
    ["model_not_allowed", "POST", narrow, json, JSON.stringify(incapable)],
    ["unsupported_feature", "POST", whole, json, JSON.stringify(incapable)],
    ["no_active_plan", "POST", whole, json, JSON.stringify(unplanned)],
  ];
  const codes: string[] = [];
  for (const [, method, key, headers, body] of asked) {
    const response = await service.fetch("/v1/chat/completions", { method, key, headers, body });
    codes.push(((await response.json()) as { error: { code: string } }).error.code);
  }
  expect(codes).toEqual(asked.map(([code]) => code));
}, 30_000);
