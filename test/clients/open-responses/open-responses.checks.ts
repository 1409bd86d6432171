/**
 * The seventeen tests of Open Responses, under their original names: eight of responses, two of compaction and seven of
 * WebSockets. The requests are this project's own; every request, body and event is checked against the published
 * schema. Run by `npm run test:clients -- open-responses`.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { model, type Service, startService } from "../../harness/engine.ts";
import { eventsOf, finalOf, textOf } from "../../harness/responses.ts";
import { errorIn, responseIn, type ServerEvent, talk } from "../../harness/websocket.ts";
import { type Schema, startSchema } from "./schema.ts";

setDefaultTimeout(60_000);

let service: Service;
let schema: Schema;
beforeAll(async () => {
  schema = startSchema(process.env.OPEN_RESPONSES_PYTHON!);
  service = await startService({ engine: { directives: "", namesModel: false } });
});
afterAll(async () => {
  schema.stop();
  await service.stop();
});

interface Answered {
  status: string;
  output: { type: string; role?: string }[];
}

const user = (content: unknown) => ({ type: "message", role: "user", content });
const assistant = (content: string, more: object = {}) => ({ type: "message", role: "assistant", content, ...more });
const echo = (text: string) => `[simulator: echo] ${text}`;

/** Sends an unstreamed request, whose response must be complete. Both must match the schema. */
async function answered(body: object): Promise<Answered> {
  const asked = { model, ...body };
  expect(await schema.objections("request", asked)).toEqual([]);
  const response = await service.post("/v1/responses", asked);
  expect(response.status).toBe(200);
  const said = (await response.json()) as Answered;
  expect(await schema.objections("response", said)).toEqual([]);
  expect(said.status).toBe("completed");
  expect(said.output.length).toBeGreaterThan(0);
  return said;
}

describe("responses", () => {
  test("basic-response", async () => {
    await answered({ input: [user("Name a colour.")] });
  });

  test("assistant-phase: what an assistant said is taken with its phase", async () => {
    const said = [assistant("I look it up.", { phase: "commentary" }), assistant("Blue.", { phase: "final_answer" })];
    await answered({ input: [...said, user("Once more?")] });
  });

  test("response-output-phase-schema: the schema has answers with phases", async () => {
    const said = await answered({ input: [user("Name a colour.")] });
    const [message] = said.output.filter(({ type }) => type === "message");
    for (const phase of ["commentary", "final_answer"])
      expect(await schema.objections("response", { ...said, output: [{ ...message, phase }] })).toEqual([]);
    expect(await schema.objections("response", { ...said, output: [{ ...message, phase: "neither" }] })).not.toEqual(
      [],
    );
  });

  test("streaming-response", async () => {
    const response = await service.post("/v1/responses", { model, input: "Count to five.", stream: true });
    const events = await eventsOf(response);
    expect(events.length).toBeGreaterThan(5);
    expect(await schema.objections("event", ...events)).toEqual([]);
    expect(await schema.objections("response", finalOf(events))).toEqual([]);
    expect(finalOf(events).status).toBe("completed");
  });

  test("system-prompt", async () => {
    await answered({
      input: [{ type: "message", role: "system", content: "Speak in rhymes." }, user("Good morning.")],
    });
  });

  test("tool-calling", async () => {
    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const tools = [{ type: "function", name: "temperature", description: "Of a city, now", parameters }];
    const said = await answered({ input: [user("How warm is it in Oslo?")], tools, tool_choice: "required" });
    expect(said.output.map(({ type }) => type)).toContain("function_call");
  });

  test("image-input", async () => {
    const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const image = { type: "input_image", image_url: `data:image/png;base64,${pixel}` };
    await answered({ input: [user([{ type: "input_text", text: "What is this?" }, image])] });
  });

  test("multi-turn", async () => {
    await answered({ input: [user("I am Ada."), assistant("Hello, Ada."), user("Who am I?")] });
  });
});

const compact = (body: object) => service.post("/v1/responses/compact", body);

describe("compaction", () => {
  test("compact-response", async () => {
    const input = [user("We meet on Friday at nine."), assistant("Friday at nine, noted.")];
    const response = await compact({ model, prompt_cache_key: "meeting", input });
    expect(response.status).toBe(200);
    const said = (await response.json()) as { object: string; output: { type: string }[] };
    expect(await schema.objections("compaction", said)).toEqual([]);
    expect(said.object).toBe("response.compaction");
    expect(said.output.map(({ type }) => type)).toContain("compaction");
  });

  test("compact-missing-model", async () => {
    expect([400, 422]).toContain((await compact({ input: [user("Summarize.")] })).status);
  });
});

const connect = () => talk(service.url, { authorization: `Bearer ${service.key}` });
const missing = { code: "previous_response_not_found" };
/** The body of a request whose response is not stored: only the WebSocket connection remembers it. */
const passing = (input: unknown, more: object = {}) => ({ model, store: false, input, ...more });

async function create(client: Awaited<ReturnType<typeof connect>>, body: object): Promise<ServerEvent[]> {
  expect(await schema.objections("socket request", { type: "response.create", ...body })).toEqual([]);
  const events = await client.create(body);
  expect(await schema.objections("socket event", ...events)).toEqual([]);
  return events;
}

async function completedIn(events: readonly ServerEvent[]) {
  const response = responseIn(events);
  expect(await schema.objections("response", response)).toEqual([]);
  expect(response.status).toBe("completed");
  return response;
}

describe("WebSockets", () => {
  test("websocket-response", async () => {
    using client = await connect();
    const events = await create(client, { model, input: [user("Count to three.")] });
    expect(events.length).toBeGreaterThan(5);
    await completedIn(events);
  });

  test("websocket-sequential-responses", async () => {
    using client = await connect();
    for (const word of ["one", "two"])
      expect(textOf(await completedIn(await create(client, passing(echo(word)))))).toContain(word);
  });

  test("websocket-continuation: of a response that is not stored, with its new input alone", async () => {
    using client = await connect();
    const first = await completedIn(await create(client, passing("The word is amber.")));
    await completedIn(await create(client, passing("Which word?", { previous_response_id: first.id })));
    expect(JSON.stringify(service.engine.requests.at(-1)!.body)).toContain("The word is amber.");
  });

  test("websocket-reconnect-store-false-recovery: on another connection it is gone, and one begins anew", async () => {
    using client = await connect();
    const first = await completedIn(await create(client, passing("The word is amber.")));
    using other = await connect();
    const lost = await create(other, passing("Which word?", { previous_response_id: first.id }));
    expect(errorIn(lost)).toMatchObject(missing);
    await completedIn(await create(other, passing([user("The word is amber. Which word?")])));
  });

  test("websocket-previous-response-not-found", async () => {
    using client = await connect();
    const unknown = { previous_response_id: `resp_${"0".repeat(32)}` };
    expect(errorIn(await create(client, passing("Go on.", unknown)))).toMatchObject(missing);
    expect(errorIn(await create(client, passing("Go on.", { previous_response_id: "resp_of_nobody" })))).toMatchObject(
      missing,
    );
  });

  test("websocket-failed-continuation-evicts-cache", async () => {
    using client = await connect();
    const first = await completedIn(await create(client, passing("The word is amber.")));
    const stray = [{ type: "function_call_output", call_id: "call_of_nobody", output: "nothing" }];
    const failed = await create(client, passing(stray, { previous_response_id: first.id }));
    expect(failed.at(-1)!.type).toMatch(/^(error|response\.failed)$/);
    const again = await create(client, passing("Which word?", { previous_response_id: first.id }));
    expect(errorIn(again)).toMatchObject(missing);
  });

  test("websocket-compact-new-chain: a new chain begins with what was compacted", async () => {
    const input = [user([{ type: "input_text", text: "The word is amber." }]), user("Make it short.")];
    const { output } = (await (await compact({ model, input })).json()) as { output: object[] };
    using client = await connect();
    const events = await client.create(passing([...output, user("Go on.")], { tools: [] }));
    expect(await schema.objections("socket event", ...events)).toEqual([]);
    await completedIn(events);
  });
});
