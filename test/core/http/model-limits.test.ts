/** Limits for models as a client meets them: errors, receipts, usage, and limits that change while a request runs. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { bare } from "../../../src/core/store/ids.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { limitModels } from "../../core/store/model-limits.ts";
import { model, plainModel, says, startService } from "../../harness/engine.ts";
import { dollars, nanosOf } from "../../harness/money.ts";
import { newKey, newOrganization } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { freshDatabase } from "../../harness/services.ts";

setDefaultTimeout(60_000);

const database = await freshDatabase();
const service = await startService({
  plans: { wide: "{ session: 100000000, concurrent_requests: 50 }" },
  engine: { directives: "", namesModel: false },
  sluice: { store: "postgres", env: { DATABASE_URL: database.url } },
});
let db: Database;
beforeAll(async () => {
  db = await serverDatabase(database.url);
});
afterAll(async () => {
  await db.close();
  await service.stop();
  await database.drop();
}, 60_000);

const chat = (key: string, content: string, of = model, stream = false) =>
  service.post(
    "/v1/chat/completions",
    { model: of, messages: [{ role: "user", content }], max_tokens: 256, stream },
    { key },
  );
type Body = Record<string, unknown>;
const errorOf = async (response: Response) => ((await response.json()) as { error: Body }).error;
const get = async (path: string, key: string) => (await (await service.fetch(path, { key })).json()) as Body;
const uuidOf = async (slug: string) => {
  const [row] = await db.query<{ id: string }>("select id from organization where slug = $1", [slug]);
  return row!.id;
};
/** The pattern of all models of the maker, such as `acme/*`. */
const prefixOf = (id: string) => `${id.split("/")[0]}/*`;

test("an error, its receipt and the usage name the models of the limit that was full", async () => {
  const organization = await newOrganization(service, "wide");
  const { id, key } = await newKey(service, organization);
  await limitModels(db, await uuidOf(organization), bare(id, "key_"), model, { session: 1_000 });
  await limitModels(db, await uuidOf(organization), await uuidOf(organization), prefixOf(model), { week: 90_000_000 });
  const refused = await chat(key, "hello");
  expect(refused.status).toBe(429);
  const named = { limited_by: "key", limited_models: model };
  const error = await errorOf(refused);
  expect(error).toMatchObject({ code: "usage_limit_reached", limit: "session", limit_value: dollars(1_000), ...named });
  expect(error.message).toEndWith(`ask your administrator for a higher limit of the key for ${model}.`);
  const receipt = await get(`/v1/service/requests/${requestIdOf(refused)}`, key);
  expect(receipt).toMatchObject({ outcome: "refused", error_code: "usage_limit_reached", ...named });

  const served = await chat(key, "hello", plainModel);
  expect(served.status).toBe(200);
  const served_receipt = await get(`/v1/service/requests/${requestIdOf(served)}`, key);
  expect(served_receipt).toMatchObject({ limited_by: null, limited_models: null });
  expect(await get("/v1/service/usage", key)).toMatchObject({
    object: "service.usage",
    models: { [prefixOf(model)]: { week: { usage_percent: expect.any(Number) } } },
    key: { models: { [model]: { session: { usage_percent: 0 } } } },
  });
});

test("limits of a minute for models are those of the key at once, in errors and in the usage", async () => {
  const organization = await newOrganization(service, "wide");
  const { id, key } = await newKey(service, organization);
  const limits = await limitModels(db, await uuidOf(organization), bare(id, "key_"), model, {});
  await db.query("update usage_subject set requests_per_minute = 1 where subject_id = $1", [limits]);
  expect((await chat(key, "hello")).status).toBe(200);
  const refused = await chat(key, "hello");
  expect(await errorOf(refused)).toMatchObject({
    ...{ code: "rate_limit_exceeded", limited_by: "key", limited_models: model },
  });
  expect((await chat(key, "hello", plainModel)).status).toBe(200);
  const usage = (await get("/v1/service/usage", key)) as { key: { models: Record<string, Body> } };
  expect(usage.key.models[model]).toMatchObject({ requests_per_minute: { usage_percent: 100 } });
});

test("a limit for models that is set while a request runs ends it where the limit is", async () => {
  const organization = await newOrganization(service, "wide");
  const { key } = await newKey(service, organization);
  const running = await chat(key, `[simulator: tps=20]${" hello".repeat(200)}`, model, true);
  expect(running.status).toBe(200);
  const id = requestIdOf(running);
  const whole = running.text();
  await limitModels(db, await uuidOf(organization), await uuidOf(organization), prefixOf(model), { session: 30_000 });
  await whole;
  const receipt = await endedReceipt(service, id, { key });
  const named = { stopped_by: "usage_window", limited_models: prefixOf(model) };
  expect(receipt).toMatchObject({ ...named, limited_by: "organization" });
  expect(nanosOf(receipt.cost.charged)).toBeLessThanOrEqual(30_000);
  expect(await get("/v1/service/usage", key)).toMatchObject({ models: { [prefixOf(model)]: { session: {} } } });
});

test("a whole answer that a limit for models cuts short names it in its receipt", async () => {
  const organization = await newOrganization(service, "wide");
  const { id, key } = await newKey(service, organization);
  await limitModels(db, await uuidOf(organization), bare(id, "key_"), prefixOf(model), { week: 400_000 });
  const cut = await service.post(
    "/v1/chat/completions",
    { model, messages: says("tokens=16000"), max_tokens: 16_000 },
    { key },
  );
  expect(await cut.json()).toMatchObject({ choices: [{ finish_reason: "length" }] });
  const receipt = await endedReceipt(service, requestIdOf(cut), { key });
  expect(receipt).toMatchObject({ stopped_by: "usage_window", limited_by: "key", limited_models: prefixOf(model) });
  const { stdout } = await service.cli("request", "show", requestIdOf(cut));
  expect(stdout).toContain(`a usage limit of the key for ${prefixOf(model)}`);
});
