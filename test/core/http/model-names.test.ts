/**
 * Aliases and retirements over real sockets: which model a name means, on every operation, and what clients are told.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RequestReceipt } from "../../../src/core/operations/receipt-shape.ts";
import { newKey } from "../../harness/organizations.ts";
import { requestIdOf } from "../../harness/receipts.ts";
import { startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { talk } from "../../harness/websocket.ts";

setDefaultTimeout(60_000);

const modelOf = (id: string, fields: Record<string, unknown>) => ({
  ...{ id, created: 1790000000, context_window: 8192, prices: { input: 0.001, output: 0.002 } },
  routes: [{ upstream: "simulator", model: id }],
  ...fields,
});
const config = `metering: { currency: USD }
models: ${JSON.stringify([
  modelOf("acme/writer-2", { aliases: ["acme/writer", "acme/writer:latest"], extra_params: ["top_k"] }),
  modelOf("acme/leaving", {
    ...{ aliases: ["acme/soon"], deprecated_at: "2026-01-31", retires_at: "2999-12-31", replaced_by: "acme/writer-2" },
  }),
  modelOf("acme/gone", { retires_at: "2020-02-29T12:00:00Z", replaced_by: "acme/between" }),
  modelOf("acme/between", { retires_at: "2020-03-01", replaced_by: "acme/writer-2", redirect: true }),
  modelOf("acme/moved", {
    aliases: ["acme/mv"],
    retires_at: "2020-03-01",
    replaced_by: "acme/between",
    redirect: true,
  }),
  modelOf("acme/lost", { retires_at: "2020-03-01" }),
])}\n`;

const service = await startSluice({ config });
afterAll(() => service.stop());

const says = [{ role: "user", content: "[simulator: tokens=3]" }];
interface Door {
  name: string;
  ask(model: string, key?: string): Promise<Response>;
}
const keyed = (key?: string) => (key ? { key } : {});
const answering: Door[] = [
  {
    name: "chat",
    ask: (model, key) => service.post("/v1/chat/completions", { model, messages: says }, keyed(key)),
  },
  {
    name: "Messages",
    ask: (model, key) => service.post("/v1/messages", { model, messages: says, max_tokens: 9 }, keyed(key)),
  },
  {
    name: "Responses",
    ask: (model, key) => service.post("/v1/responses", { model, input: says[0]!.content }, keyed(key)),
  },
];
const counting: Door[] = [
  {
    name: "count_tokens",
    ask: (model, key) => service.post("/v1/messages/count_tokens", { model, messages: says }, keyed(key)),
  },
  {
    name: "input_tokens",
    ask: (model, key) => service.post("/v1/responses/input_tokens", { model, input: "x" }, keyed(key)),
  },
];
const doors = [...answering, ...counting];
const each = doors.map((door) => [door.name, door] as const);
const messageOf = async (response: Response) =>
  ((await response.json()) as { error: { message: string } }).error.message;
const told = ({ headers }: Response) => ["deprecation", "sunset", "link"].map((name) => headers.get(name));
const receiptOf = async (id: string) =>
  (await (await service.fetch(`/v1/service/requests/${id}`)).json()) as RequestReceipt;

const keyFor = async (model: string) => (await newKey(service, service.organization, "--models", model)).key;

describe("an alias", () => {
  test.each(answering.map((door) => [door.name, door] as const))(
    "at %s is answered by its model: the answer repeats it, the receipt has the id",
    async (_, door) => {
      const response = await door.ask("acme/writer");
      expect(response.status).toBe(200);
      expect(((await response.json()) as { model: string }).model).toBe("acme/writer");
      expect((await receiptOf(requestIdOf(response))).model).toBe("acme/writer-2");
      expect(told(response)).toEqual([null, null, null]);
    },
  );

  test("is repeated in a stream, and over a WebSocket", async () => {
    const stream = await service.post("/v1/chat/completions", { model: "acme/writer", messages: says, stream: true });
    expect(await stream.text()).toContain('"model":"acme/writer"');
    using client = await talk(service.url, { authorization: `Bearer ${service.key}` });
    const events = await client.create({ model: "acme/writer", input: "x" });
    expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { model: "acme/writer" } });
  });

  test.each(counting.map((door) => [door.name, door] as const))("is counted at %s", async (_, door) => {
    expect((await door.ask("acme/writer:latest")).status).toBe(200);
  });

  test("takes the fields that its model takes, and a refusal's receipt has the id", async () => {
    const ask = { model: "acme/writer", messages: says };
    expect((await service.post("/v1/chat/completions", { ...ask, top_k: 3 })).status).toBe(200);
    const refused = await service.post("/v1/chat/completions", { ...ask, top_q: 3 });
    expect(refused.status).toBe(400);
    expect((await receiptOf(requestIdOf(refused))).model).toBe("acme/writer-2");
  });

  test("is listed beside its id, and retrieved with it", async () => {
    const list = (await (await service.fetch("/v1/models")).json()) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).toEqual([
      ...["acme/writer-2", "acme/writer", "acme/writer:latest", "acme/leaving", "acme/soon"],
    ]);
    const found = await service.fetch("/v1/models/acme%2Fwriter");
    expect(await found.json()).toMatchObject({
      ...{ id: "acme/writer", canonical_id: "acme/writer-2", aliases: ["acme/writer", "acme/writer:latest"] },
    });
    const headers = { "anthropic-version": "2023-06-01" };
    const messages = await service.fetch("/v1/models/acme/writer", { headers });
    expect(await messages.json()).toMatchObject({ id: "acme/writer" });
  });

  test("and its id are one model to a limited key, whichever of them it was limited to", async () => {
    for (const name of ["acme/writer", "acme/writer-2"]) {
      const key = await keyFor(name);
      for (const door of doors) {
        expect((await door.ask("acme/writer:latest", key)).status).toBe(200);
        expect((await door.ask("acme/writer-2", key)).status).toBe(200);
        expect((await door.ask("acme/leaving", key)).status).toBe(403);
      }
    }
  });
});

describe("a model that is to be retired", () => {
  test.each(each)("is announced at %s, by its id and by an alias", async (_, door) => {
    for (const name of ["acme/leaving", "acme/soon"]) {
      const response = await door.ask(name);
      expect(response.status).toBe(200);
      expect(told(response)).toEqual([
        ...["@1769817600", "Tue, 31 Dec 2999 00:00:00 GMT", '</v1/models/acme%2Fwriter-2>; rel="successor-version"'],
      ]);
    }
  });

  test("is announced by the first event over a WebSocket, and by no other", async () => {
    using client = await talk(service.url, { authorization: `Bearer ${service.key}` });
    const [first, ...others] = await client.create({ model: "acme/leaving", input: "x" });
    expect(first).toMatchObject({
      request_id: expect.stringMatching(/^req_/),
      headers: {
        deprecation: "@1769817600",
        sunset: "Tue, 31 Dec 2999 00:00:00 GMT",
        link: '</v1/models/acme%2Fwriter-2>; rel="successor-version"',
      },
    });
    expect(others.filter((event) => Object.hasOwn(event, "headers"))).toEqual([]);
    const [served] = await client.create({ model: "acme/writer", input: "x" });
    expect(served).not.toHaveProperty("headers");
  });

  test("is announced with a stream, and where it is retrieved", async () => {
    const ask = { model: "acme/leaving", messages: says, stream: true };
    const stream = await service.post("/v1/chat/completions", ask);
    expect(told(stream)[0]).toBe("@1769817600");
    await stream.text();
    const found = await service.fetch("/v1/models/acme/leaving");
    expect(told(found)[0]).toBe("@1769817600");
    expect(await found.json()).toMatchObject({
      deprecated_at: "2026-01-31T00:00:00.000Z",
      retires_at: "2999-12-31T00:00:00.000Z",
      replaced_by: "acme/writer-2",
    });
  });
});

describe("an error", () => {
  const leaving = [
    "@1769817600",
    "Tue, 31 Dec 2999 00:00:00 GMT",
    '</v1/models/acme%2Fwriter-2>; rel="successor-version"',
  ];

  test.each(each)("announces at %s that its model is to be retired", async (_, door) => {
    const refused = await door.ask("acme/leaving", await keyFor("acme/writer-2"));
    expect([refused.status, ...told(refused)]).toEqual([403, ...leaving]);
    const gone = await door.ask("acme/gone");
    expect([gone.status, ...told(gone)]).toEqual([
      ...[404, "@1582977600", "Sat, 29 Feb 2020 12:00:00 GMT", '</v1/models/acme%2Fbetween>; rel="successor-version"'],
    ]);
    const unknown = await door.ask("acme/unknown");
    expect([unknown.status, ...told(unknown)]).toEqual([404, null, null, null]);
  });

  test("about a field, of an engine and of a retrieved model announces it too; one about the key has no model", async () => {
    const ask = { model: "acme/soon", messages: says };
    const refused = await service.post("/v1/chat/completions", { ...ask, top_q: 3 });
    expect([refused.status, ...told(refused)]).toEqual([400, ...leaving]);
    const failing = [{ role: "user", content: "[simulator: status=500]" }];
    const failed = await service.post("/v1/chat/completions", { ...ask, messages: failing });
    expect([failed.status, ...told(failed)]).toEqual([503, ...leaving]);
    const gone = await service.fetch("/v1/models/acme/gone");
    expect([gone.status, told(gone)[0]]).toEqual([404, "@1582977600"]);
    const nobody = await service.post("/v1/chat/completions", ask, { key: null });
    expect([nobody.status, ...told(nobody)]).toEqual([401, null, null, null]);
  });

  test("over a WebSocket announces it in its headers", async () => {
    using client = await talk(service.url, { authorization: `Bearer ${service.key}` });
    const events = await client.create({ model: "acme/leaving", input: "x", temperature: 9 });
    expect(events.at(-1)).toMatchObject({ type: "error", status: 400, headers: { deprecation: leaving[0] } });
  });
});

describe("a reload", () => {
  test("changes aliases and retirements, and streams that were asked for by an old alias go on", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-names-"));
    const file = join(folder, "sluice.yaml");
    const saved = (...models: object[]) =>
      writeFileSync(
        file,
        `metering: { currency: USD }
models: ${JSON.stringify(models)}\n`,
      );
    saved(modelOf("acme/first", { aliases: ["acme/best"] }), modelOf("acme/second", { aliases: ["acme/other"] }));
    const node = await startSluice({ env: { SLUICE_CONFIG: file } });
    const ask = (model: string, more = {}) => node.post("/v1/chat/completions", { model, messages: says, ...more });
    const answerer = async (model: string) => {
      const response = await ask(model);
      if (response.status !== 200) return response.status;
      return ((await (await node.fetch(`/v1/service/requests/${requestIdOf(response)}`)).json()) as RequestReceipt)
        .model;
    };
    expect(await Promise.all(["acme/best", "acme/other"].map(answerer))).toEqual(["acme/first", "acme/second"]);
    const slow = [{ role: "user", content: "[simulator: tps=30 tokens=60]" }];
    const running = await ask("acme/best", { messages: slow, stream: true });
    saved(
      modelOf("acme/first", { retires_at: "2020-03-01", replaced_by: "acme/second", redirect: true }),
      modelOf("acme/second", { aliases: ["acme/best"] }),
    );
    node.signal("SIGHUP");
    await until(() => node.stderr().includes("configuration_reloaded"), 10_000, "the reload");
    expect(await Promise.all(["acme/best", "acme/other", "acme/first"].map(answerer))).toEqual([
      ...["acme/second", 404, "acme/second"],
    ]);
    expect(told(await ask("acme/first"))[0]).toBe("@1583020800");
    const text = await running.text();
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    expect(text).toContain('"model":"acme/best"');
    await node.stop();
    rmSync(folder, { recursive: true });
  });
});

describe("after its day", () => {
  test.each(each)("a model is 404 at %s, with the one that replaces it", async (_, door) => {
    const gone = await door.ask("acme/gone");
    expect(gone.status).toBe(404);
    expect(await messageOf(gone)).toContain(
      "The model 'acme/gone' was retired on 2020-02-29. Use 'acme/writer-2' in its place.",
    );
    const lost = await door.ask("acme/lost");
    expect([lost.status, await messageOf(lost)]).toEqual([404, expect.stringContaining("GET /v1/models lists")]);
  });

  test.each(each)("a redirected model is answered at %s by the one that replaces it", async (_, door) => {
    for (const name of ["acme/moved", "acme/mv"]) {
      const response = await door.ask(name);
      expect(response.status).toBe(200);
      expect(told(response)).toEqual([
        ...["@1583020800", "Sun, 01 Mar 2020 00:00:00 GMT", '</v1/models/acme%2Fbetween>; rel="successor-version"'],
      ]);
    }
  });

  test("a redirected model's answer repeats its name, and the receipt has the model that answered", async () => {
    const response = await answering[0]!.ask("acme/moved");
    expect(((await response.json()) as { model: string }).model).toBe("acme/moved");
    expect((await receiptOf(requestIdOf(response))).model).toBe("acme/writer-2");
  });

  test("a key needs the model that answers", async () => {
    const old = await keyFor("acme/moved");
    const fresh = await keyFor("acme/writer-2");
    for (const door of doors) {
      expect((await door.ask("acme/moved", old)).status).toBe(403);
      expect((await door.ask("acme/moved", fresh)).status).toBe(200);
    }
  });

  test("a WebSocket says so too", async () => {
    using client = await talk(service.url, { authorization: `Bearer ${service.key}` });
    const events = await client.create({ model: "acme/gone", input: "x" });
    expect(events.at(-1)).toMatchObject({ type: "error", status: 404, error: { code: "model_not_found" } });
  });
});
