// The frame around every handler: whatever is thrown, a request is answered once and closed
// (docs/design/errors-and-streams.md, Errors), and a drain lasts no longer than the open requests. Requests that one
// poll of the event loop brings are read in their order, once all of them have arrived: docs/design/runtime.md, Bun as
// a server.
import { expect, test } from "bun:test";
import Type from "typebox";
import type { Call } from "../../../src/core/http/call.ts";
import { frame, lifecycle } from "../../../src/core/http/frame.ts";
import { json } from "../../../src/core/http/json.ts";
import { slowness } from "../../../src/core/http/slowness.ts";
import { primed, sseAnswer } from "../../../src/core/http/stream.ts";
import type { StreamOwner } from "../../../src/core/http/streamed-body.ts";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { createChatCompletion } from "../../../src/core/operations/chat.ts";
import type { Dependencies } from "../../../src/core/operations/dependencies.ts";
import { faultBodyOf } from "../../../src/core/operations/fault-body.ts";
import type { Operation } from "../../../src/core/operations/operation.ts";
import { serveOperation } from "../../../src/core/operations/serve-operation.ts";
import { countTokens } from "../../../src/core/operations/token-count.ts";
import { openaiChatCaller } from "../../../src/core/protocol/openai-chat/codec.ts";
import { validateChatRequest } from "../../../src/core/protocol/openai-chat/validate.ts";
import { Cancellation } from "../../../src/core/time/cancellation.ts";
import { plentifulBounds } from "../../harness/bounds.ts";
import { until } from "../../harness/until.ts";

const connection = { address: () => "192.0.2.1", isLocal: () => false, keepOpen() {} };

/** The dependencies of the frame; `seen` gets the statuses that are logged and those that are counted in metrics. */
function needing(seen: { logged: number[]; counted: number[] }, isRead = true): Dependencies {
  const needed: Partial<Dependencies> = {
    newId: () => "0".repeat(32),
    bounds: plentifulBounds(),
    lifecycle: lifecycle(),
    unread: { discard: async () => isRead },
    metrics: { request: ({ status }: { status: number }) => void seen.counted.push(status) } as never,
    log: { request: (_, status) => void seen.logged.push(status), event() {}, flush() {} },
    shedsConnection: () => false,
  };
  return needed as Dependencies;
}
const refuses = () => {
  throw new Fault("model_not_found", "There is no such model.");
};
const noneSeen = (): { logged: number[]; counted: number[] } => ({ logged: [], counted: [] });
type Framed = Omit<Parameters<typeof frame>[1], "path" | "faultBody">;
/** The frame's answer to a request at /v1/models. */
const answerOf = (framed: Framed, needed = needing(noneSeen()), init: RequestInit = {}) =>
  frame(needed, { path: "/v1/models", faultBody: faultBodyOf(), ...framed })(
    new Request("http://localhost/v1/models", init),
    connection,
  );

test("a refusal whose headers cannot be sent keeps its status, and the request is closed", async () => {
  const seen = noneSeen();
  const needed = needing(seen);
  const response = await answerOf({ work: refuses, faultHeaders: () => ({ "x-said": "€ 5" }) }, needed);
  expect(response.status).toBe(404);
  expect(seen.logged).toEqual([404]);
  expect(needed.lifecycle.openCount).toBe(0);
});

test("a defect in the record of a refusal is a 500, and the request is closed", async () => {
  const seen = noneSeen();
  const failed = () => {
    throw new Error("the counter is broken");
  };
  const response = await answerOf({ work: refuses, failed }, needing(seen));
  expect(response.status).toBe(500);
  expect(seen.logged).toEqual([500]);
});

test.each([
  [true, null],
  [false, "close"],
])("a refused request, its body read: %p, says of its connection: %p", async (isRead, connectionHeader) => {
  const response = await answerOf({ work: refuses }, needing(noneSeen(), isRead), { method: "POST", body: "{}" });
  expect(response.headers.get("connection")).toBe(connectionHeader);
});

test.each([
  ["rate_limit_exceeded", 60, "60", null],
  ["rate_limit_exceeded", 60.2, null, "false"],
  ["usage_limit_reached", 604_048, null, "false"],
  ["usage_limit_reached", 12.1, "13", null],
  ["upstream_unavailable", 120, "120", "false"],
  ["overloaded", 1, "1", null],
] as const)(
  "%s that %p s mend names the wait %p, and x-should-retry is %p",
  async (code, wait_s, wait, shouldRetry) => {
    const work = () => {
      throw new Fault(code, "Later.", { retryAfterSeconds: wait_s });
    };
    const { headers } = await answerOf({ work });
    expect([headers.get("retry-after"), headers.get("x-should-retry")]).toEqual([wait, shouldRetry]);
  },
);

test("each part of a request's work ends, the last first, whatever the others throw, and the last failure is told", async () => {
  const ends: string[] = [];
  const sync = (name: string): Disposable => ({ [Symbol.dispose]: () => void ends.push(name) });
  const failing = (name: string): AsyncDisposable => ({
    async [Symbol.asyncDispose]() {
      await Bun.sleep(0);
      ends.push(name);
      throw new Fault(name === "second" ? "model_not_found" : "overloaded", name);
    },
  });
  const work = (call: Call) => {
    for (const part of [sync("first"), failing("second"), sync("third"), failing("fourth")]) call.begins(part);
    return json(200, {});
  };
  const answer = await answerOf({ work });
  expect([answer.status, await answer.json()]).toMatchObject([404, { error: { message: "second" } }]);
  expect(ends).toEqual(["fourth", "third", "second", "first"]);
});

test("a stream that its client left is counted as 499, whatever it began with", async () => {
  const seen = noneSeen();
  let owner = null as StreamOwner | null;
  const open = (given: StreamOwner) => {
    owner = given;
    return new Response("begun");
  };
  expect((await answerOf({ work: () => ({ open }) }, needing(seen))).status).toBe(200);
  owner!.left();
  owner!.closed();
  while (seen.counted.length === 0) await Bun.sleep(1);
  expect(seen.counted).toEqual([499]);
});

test("a drain ends with the last open request, which ends as it would have", async () => {
  const requests = lifecycle();
  const ended: unknown[] = [];
  const call = { end: (fault: unknown) => void ended.push(fault) } as unknown as Call;
  const [first, second] = [requests.enter(call), requests.enter(call)];
  const finished = requests.finish(60_000);
  requests.leave(first);
  await Bun.sleep(1);
  expect(Bun.peek.status(finished)).toBe("pending");
  requests.leave(second);
  await finished;
  expect(ended).toEqual([]);
});

/**
 * Limits of delayed refusals: a refusal that cost the caller nothing is sent after a wait. The wait ends when the
 * caller disconnects, and then another refusal may wait instead.
 */
const limits = (wait_ms: number) => ({ waiting_max: 1, shortest_ms: wait_ms, longest_ms: wait_ms });

test("a client that waits to the end is answered, and beyond the places no client waits", async () => {
  const slow = slowness(limits(20), () => 0);
  const first = slow.wait(new Cancellation());
  expect(await slow.wait(new Cancellation())).toBe(false);
  expect(await first).toBe(true);
  expect(await slow.wait(new Cancellation())).toBe(true);
});

test("a client that leaves waits no longer, and its place is free", async () => {
  const slow = slowness(limits(3_600_000), () => 0);
  const leaving = new Cancellation();
  const first = slow.wait(leaving);
  leaving.abort(new Error("the caller left"));
  expect(await first).toBe(false);
  const next = new Cancellation();
  const second = slow.wait(next);
  expect(Bun.peek.status(second)).toBe("pending");
  next.abort(new Error("the caller left"));
  expect(await second).toBe(false);
  expect(await slow.wait(next)).toBe(false);
});

const steps: string[] = [];
const serves: Partial<Dependencies> = {
  ...needing(noneSeen()),
  async authenticate(headers) {
    if (!headers.get("authorization")) throw new Fault("missing_api_key", "No key.");
    const key = { id: "key_1", scopes: ["inference:create"], models: null };
    return { key, organization: { id: "org_1", plan: null } } as never;
  },
  arrivals: { take() {} },
  catalog: () => ({ models: new Map(), plans: new Map() }) as never,
  metrics: { decision() {}, unauthenticated() {}, request() {} } as never,
  traces: null,
};
const serving = (operation: Operation, more: Partial<Dependencies> = {}) =>
  serveOperation({ ...serves, ...more } as Dependencies, {
    ...operation,
    request: {
      schema: Type.Object({}),
      read: async (_, call) => void steps.push(`${nameOf(call.request)} is read`) as never,
    },
    handle: () => json(200, {}),
  });
const serve = serving(createChatCompletion);
const nameOf = (request: Request) => request.headers.get("x-name");

async function arrived(name: string, headers: Record<string, string>): Promise<{ answer: Promise<Response> }> {
  const request = new Request("http://localhost/v1/chat/completions", {
    method: "POST",
    headers: { ...headers, "x-name": name },
  });
  const answer = serve(request, connection);
  // Lets the request do everything that it can do without waiting, before the next one arrives.
  for (let hops = 0; hops < 20; hops++) await Promise.resolve();
  steps.push(`${name} has arrived`);
  return { answer };
}

test("requests of one poll are read when all have arrived, in their order", async () => {
  steps.length = 0;
  const known = { authorization: "Bearer a" };
  const [first, second] = [await arrived("first", known), await arrived("second", known)];
  for (const { answer } of [first, second]) expect((await answer).status).toBe(200);
  expect(steps).toEqual(["first has arrived", "second has arrived", "first is read", "second is read"]);
});

test("one that is refused before its body matters waits for nobody", async () => {
  const { answer } = await arrived("stranger", {});
  const refused = await Promise.race([answer, new Promise((resolve) => setImmediate(resolve, null))]);
  expect((refused as Response | null)?.status).toBe(401);
});

test("a count of tokens takes nothing from what a key may ask of models, and the other way round", async () => {
  const taken: string[] = [];
  const arrivals = { take: (_: string, purpose: string) => void taken.push(purpose) };
  for (const operation of [createChatCompletion, countTokens]) {
    const headers = { authorization: "Bearer a" };
    const asked = new Request(`http://localhost${operation.path}`, { method: "POST", headers });
    expect((await serving(operation, { arrivals })(asked, connection)).status).toBe(200);
  }
  expect(taken).toEqual(["inference", "count"]);
});

const identity = { responseId: "chatcmpl-1", createdAtSeconds: 1, model: "acme/m" };
const wire = validateChatRequest(
  { model: "acme/m", stream: true, messages: [{ role: "user", content: "Say hello." }] },
  [],
);
const batches: InferenceEvent[][] = [
  [
    { type: "response-start", ...identity },
    { type: "part-start", index: 0, part: { kind: "text" } },
  ],
  [{ type: "part-delta", index: 0, delta: "hello" }],
  [
    { type: "part-end", index: 0 },
    { type: "response-end", reason: "stop" },
  ],
];

/** The frames that each read of the client brought, and whether the run had ended by then. */
async function readOf(batches: readonly InferenceEvent[][], ended: () => Promise<void>) {
  let isOver = false;
  const closed: string[] = [];
  async function* events() {
    yield* batches;
    await ended();
    isOver = true;
  }
  const encoder = openaiChatCaller.stream.encoder(wire, { requestId: "req_1", identity, inputTokensEstimate: 1 });
  const stream = await primed(events(), Number.POSITIVE_INFINITY);
  const owner = { left: () => closed.push("left"), closed: () => closed.push("closed") };
  const { body } = sseAnswer(stream, { encoder, heartbeat_ms: 60_000, headers: {} }).open(owner);
  const reads: { text: string; isOver: boolean }[] = [];
  for await (const bytes of body!) reads.push({ text: new TextDecoder().decode(bytes), isOver });
  return { reads, closed };
}

test("a run has ended when the client reads the last frame, which leaves with the end of the body", async () => {
  const { reads, closed } = await readOf(batches, async () => {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  });
  expect(reads.map(({ isOver }) => isOver)).toEqual([false, false, true]);
  expect(reads[0]!.text).toContain('"role":"assistant"');
  expect(reads[1]!.text).toContain("hello");
  expect(reads[2]!.text).toEndWith("data: [DONE]\n\n");
  expect(closed).toEqual(["closed"]);
});

test("a defect behind the status of a stream is told to its client, and its cause is noted for the log", async () => {
  const calls: Call[] = [];
  const needed = needing(noneSeen());
  needed.log.request = (call) => void calls.push(call);
  const defect = new Error("a defect");
  const encoder = openaiChatCaller.stream.encoder(wire, { requestId: "req_1", identity, inputTokensEstimate: 1 });
  const throws = (): never => {
    throw defect;
  };
  async function* events() {
    yield* batches;
  }
  const work = async () =>
    sseAnswer(await primed(events(), Number.POSITIVE_INFINITY), {
      encoder: { ...encoder, push: (event) => encoder.push(event), heartbeat: () => "", frame: throws },
      ...{ heartbeat_ms: 60_000, headers: {} },
    });
  const response = await answerOf({ work }, needed);
  expect(response.status).toBe(200);
  expect(await response.text()).toContain("It has been logged");
  await until(() => calls.length > 0, 2_000, "the end of the request");
  expect(calls[0]!.notes).toMatchObject({ code: "internal_error", cause: defect });
  expect(calls[0]!.endStatus(200)).toBe(500);
});

/** An endless answer, of which the client must read something every 200 ms. */
async function endless() {
  const closed: string[] = [];
  async function* events() {
    yield* batches.slice(0, 1);
    for (;;) yield [{ type: "part-delta" as const, index: 0, delta: "on" }];
  }
  const encoder = openaiChatCaller.stream.encoder(wire, { requestId: "req_1", identity, inputTokensEstimate: 1 });
  const owner = { left: () => closed.push("left"), closed: () => closed.push("closed") };
  const stream = await primed(events(), Number.POSITIVE_INFINITY);
  const { body } = sseAnswer(stream, { encoder, heartbeat_ms: 10, unread_ms_max: 200, headers: {} }).open(owner);
  return { reader: body!.getReader(), closed };
}

test("a client that reads nothing for long has left; should it read on, its stream ends with an error", async () => {
  const { reader, closed } = await endless();
  await until(() => closed.length === 2, 5_000, "the stream to be given up");
  expect(closed).toEqual(["left", "closed"]);
  let text = "";
  for (let read = await reader.read(); !read.done; read = await reader.read())
    text += new TextDecoder().decode(read.value);
  expect(text).toContain("Nothing of this answer was read for minutes, so it was ended.");
});

test("a client that reads slowly, but reads, stays", async () => {
  const { reader, closed } = await endless();
  for (let reads = 0; reads < 6; reads++) {
    await Bun.sleep(60);
    expect((await reader.read()).done).toBe(false);
  }
  expect(closed).toEqual([]);
  await reader.cancel();
});

test("a run that fails behind its last event costs the client no frame", async () => {
  const { reads, closed } = await readOf(batches, () => Promise.reject(new Error("a defect")));
  const text = reads.map((read) => read.text).join("");
  expect(text).toContain('"finish_reason":"stop"');
  expect(text).toEndWith("data: [DONE]\n\n");
  expect(closed).toEqual(["closed"]);
});
