/**
 * Attempts, route by route, until an answer's first part: the engines that are asked, those that are not, and the
 * caller's answer in the end.
 */

import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { CatalogModel, Route } from "../../../src/core/routing/catalog.ts";
import { health } from "../../../src/core/routing/health.ts";
import { queues } from "../../../src/core/routing/queues.ts";
import { Cancellation, type Signal } from "../../../src/core/time/cancellation.ts";
import { client } from "../../../src/core/upstream/http1/client.ts";
import { type Capacity, defaultTimeouts, type UpstreamTimeouts } from "../../../src/core/upstream/target.ts";
import { Attempts, type AttemptsParts } from "../../../src/core/usage/attempts.ts";
import type { Attempted, RunRequest } from "../../../src/core/usage/record.ts";
import { startWall, type Wall } from "../../failover/wall.ts";
import { attemptsParts, recordOf } from "../../harness/patience.ts";
import { saying } from "../../harness/request.ts";
import { until } from "../../harness/until.ts";
import { grammarProblem } from "../protocol/grammar.ts";
import { capacityOf, modelOf, routeTo, upstreamOf } from "../routing/models.ts";
import { attempting } from "./attempting.ts";

let wall: Wall;
/** Nothing listens at this port: the system assigns it to nobody, so no other test can have it meanwhile. */
const dead = "http://127.0.0.1:1/v1";
const engines = client();
beforeAll(async () => {
  wall = await startWall();
});
afterEach(() => void wall.asked.splice(0));
afterAll(async () => {
  engines.close();
  await wall.stop();
});

interface Told {
  events: InferenceEvent[];
  fault: Fault | null;
  /** The kind of each attempt's end, such as `answered` or `broken`. */
  kinds: string[];
  attempts: number;
  route: string | undefined;
  isAtEngine: boolean;
  /** Whether it was certain at the first part that no other engine would be asked. */
  isFinalAtFirst: boolean;
}

type Way = string | { model: string; priority?: number; contextTokens?: number; url?: string; capacity?: Capacity };

/**
 * A model with one route for each of `ways`, in the order of priority. A way that is a string is the engine's name of
 * the model; a name that begins with `dead` leads to an address where nobody listens.
 */
function modelTo(ways: readonly Way[], timeouts: Partial<UpstreamTimeouts>): CatalogModel {
  const routes = ways.map((way, index) => {
    const { model, url, capacity, ...more } = typeof way === "string" ? ({ model: way } as Exclude<Way, string>) : way;
    const upstream = upstreamOf(url ?? (model.startsWith("dead") ? dead : wall.url), {
      ...{ name: model, timeouts: { ...defaultTimeouts, ...timeouts } },
      ...(capacity ? { capacity } : {}),
    });
    return routeTo(upstream, { model, priority: index, ...more });
  });
  return modelOf(routes);
}

interface Options {
  timeouts?: Partial<UpstreamTimeouts>;
  parts?: Partial<AttemptsParts>;
  request?: Partial<RunRequest["request"]>;
  inputTokens?: number;
  signal?: Signal;
  session?: string;
  onAttempt?(attempt: Attempted): void;
}

async function outcomeOf(ways: readonly Way[], options: Options = {}): Promise<Told> {
  const kinds: string[] = [];
  const model = modelTo(ways, options.timeouts ?? {});
  const opened = new Attempts(
    attemptsParts({
      client: engines,
      attempted(attempt) {
        kinds.push(attempt.end.kind);
        options.onAttempt?.(attempt);
      },
      ...options.parts,
    }),
    attempting(
      recordOf(model, saying("hi", { model: model.id, ...options.request }), {
        inputTokens: options.inputTokens ?? 10,
        session: options.session ?? null,
      }),
      { signal: options.signal ?? new Cancellation() },
    ),
  );
  const events: InferenceEvent[] = [];
  let isFinalAtFirst = false;
  for await (const batch of opened.events) {
    if (events.every(({ type }) => type !== "part-start")) isFinalAtFirst = opened.progress.isFinal;
    events.push(...batch);
  }
  // If an answer begins anew, everything before the last start is void.
  expect(grammarProblem(events.slice(events.findLastIndex(isStart)))).toBeNull();
  const last = events.at(-1);
  const fault = last?.type === "response-failed" ? last.fault : null;
  const { attempts, isAtEngine, route } = opened.progress;
  return { events, fault, kinds, attempts, route: route?.model, isAtEngine, isFinalAtFirst };
}

const isStart = ({ type }: InferenceEvent) => type === "response-start";
const noBudget = () => ({ offered() {}, take: () => false });

test("the best priority is asked, and it alone where it answers", async () => {
  const told = await outcomeOf([
    { model: "ok-spare", priority: 1 },
    { model: "ok-first", priority: 0 },
  ]);
  expect(told).toMatchObject({ fault: null, kinds: ["answered"], attempts: 1, route: "ok-first" });
  expect(wall.asked).toEqual(["ok-first"]);
});

test("one conversation meets one engine, whatever the draw: by the client's name for it, its cache key, or its head", async () => {
  const ways = ["ok-1", "ok-2", "ok-3", "ok-4"].map((model) => ({ model, priority: 0 }));
  for (const known of [{ session: "s" }, { request: { cacheKey: "conversation" } }, {}]) {
    const routes = new Set<string | undefined>();
    for (let count = 0; count < 8; count++) {
      const parts = { draw: () => count / 8 };
      routes.add((await outcomeOf(ways, { parts, ...known })).route);
    }
    expect(routes.size).toBe(1);
  }
});

test("S01, S03: where no other engine is left, the last is asked once more, when it has room again or after a moment", async () => {
  const begun_ms = performance.now();
  // An engine that has refused the request is asked once more. If the attempt ended in another way, the engine is not
  // asked again.
  const again = Promise.all(["s01", "s03", "s04"].map((way) => outcomeOf([way])));
  const once = await Promise.all([
    ...["s02", "s06", "s13", "html", "empty"].map((way) => outcomeOf([way], { timeouts: { first_part_ms: 50 } })),
    outcomeOf(["s03-kept"], { parts: { budget: noBudget } }),
    outcomeOf(["s01-late"], { timeouts: { total_ms: 1_000 } }),
  ]);
  expect(once.map(({ attempts }) => attempts)).toEqual(once.map(() => 1));
  expect(await again).toMatchObject([
    { fault: null, kinds: ["busy", "answered"], attempts: 2 },
    { fault: null, kinds: ["failed", "answered"], attempts: 2 },
    { fault: { code: "overloaded" }, attempts: 2 },
  ]);
  expect(performance.now() - begun_ms).toBeGreaterThan(1_900);
});

test("a caller that leaves while an engine is waited for ends the wait", async () => {
  const leaving = new Cancellation();
  const onAttempt = () => queueMicrotask(() => leaving.abort(new Fault("internal_error", "the caller left")));
  const told = await outcomeOf(["s01-left"], { signal: leaving, onAttempt });
  expect(told).toMatchObject({ attempts: 1, fault: { message: "the caller left" } });
});

test("all are full: the caller is told so, and when the first of them has room", async () => {
  const told = await outcomeOf(["forever", "s01"], { timeouts: { total_ms: 1_000 } });
  expect(told.fault).toMatchObject({ code: "capacity_exceeded", details: { retryAfterSeconds: 2 } });
  const alone = await outcomeOf(["forever"]);
  expect(alone.fault).toMatchObject({ code: "capacity_exceeded", details: { retryAfterSeconds: 60 } });
  expect(alone.attempts).toBe(1);
});

test("one is broken and one is full: that is no matter of waiting alone", async () => {
  expect((await outcomeOf(["s04", "s02"])).fault?.code).toBe("overloaded");
});

test("an engine that is full and says for how long is left alone meanwhile", async () => {
  const parts = { health: health() };
  await outcomeOf(["forever", "ok"], { parts });
  expect(await outcomeOf(["forever", "ok"], { parts })).toMatchObject({ attempts: 1, route: "ok" });
});

test("a dead engine is asked three times, and then left alone: its requests cost no second attempt", async () => {
  const parts = { health: health() };
  const attempts: number[] = [];
  for (let count = 0; count < 6; count++) attempts.push((await outcomeOf(["s04-ill", "ok"], { parts })).attempts);
  expect(attempts).toEqual([2, 2, 2, 1, 1, 1]);
});

test("the record has the time of each attempt, not that since the node began", async () => {
  const times_ms: number[] = [];
  const parts = { now_ms: () => performance.now() + 1e9 };
  await outcomeOf(["s04", "ok"], { parts, onAttempt: ({ ms }) => times_ms.push(ms) });
  expect(times_ms).toHaveLength(2);
  for (const ms of times_ms) expect(ms).toBeWithin(0, 60_000);
});

test("an engine that breaks off its answers again and again is left alone, though each had begun", async () => {
  const parts = { health: health() };
  const ways = ["s08-again", "ok"];
  for (const told of await Promise.all(Array.from({ length: 10 }, () => outcomeOf(ways, { parts }))))
    expect(told).toMatchObject({ route: "s08-again", kinds: ["broken"] });
  expect(await outcomeOf(ways, { parts })).toMatchObject({ route: "ok", attempts: 1 });
});

test("what the caller did is told at once, and asked nowhere else", async () => {
  const told = await outcomeOf(["s13", "ok"]);
  expect(told).toMatchObject({ fault: { code: "invalid_value" }, kinds: ["rejected"], attempts: 1 });
});

/** An answer that is not streamed to the client and whose cap is too large to request it unstreamed from the engine. */
const collected = { stream: false, outputTokens_max: 900 };
/** An answer that is not streamed to the client and is requested unstreamed from the engine. */
const wholly = { stream: false, outputTokens_max: 100 };

test("of an answer that nobody streams nothing was shown: where its engine breaks off, another begins it anew", async () => {
  const told = await outcomeOf(["s08", "ok"], { request: collected });
  expect(told).toMatchObject({ fault: null, kinds: ["broken", "answered"], attempts: 2, route: "ok" });
  const starts = told.events.flatMap((event, at) => (isStart(event) ? [at] : []));
  // The text of the first engine is already void while the next engine is awaited.
  expect(starts.length).toBeGreaterThan(2);
  expect(told.events.filter(({ type }) => type === "part-start")).toHaveLength(2);
});

test("where all break off, the last failure is told; without budget, or by the request's own fault, nobody else is asked", async () => {
  const told = [
    outcomeOf(["s08-1", "s08-2"], { request: collected }),
    outcomeOf(["s08", "ok"], { request: collected, parts: { budget: noBudget } }),
  ];
  expect(await Promise.all(told)).toMatchObject([
    { fault: { code: "upstream_unavailable" }, kinds: ["broken", "broken"] },
    { kinds: ["broken"], attempts: 1 },
  ]);
});

test("a caller that leaves between two such attempts ends them, and no engine has its request", async () => {
  const leaving = new Cancellation();
  const leave = () => leaving.abort(new Fault("internal_error", "the caller left"));
  const told = await outcomeOf(["s08", "ok"], {
    request: collected,
    signal: leaving,
    onAttempt: () => queueMicrotask(leave),
  });
  expect(told).toMatchObject({ kinds: ["broken"], fault: { message: "the caller left" }, isAtEngine: false });
});

test("a caller that leaves what the engine was asked for whole: it is let finish, and no other is asked where it fails", async () => {
  for (const [way, kinds, isAtEngine] of [
    ["s06-late", ["answered"], true],
    ["s06-ill", ["failed"], false],
  ] as const) {
    const leaving = new Cancellation();
    const outcome = outcomeOf([way, "ok"], { request: wholly, signal: leaving });
    await until(() => wall.asked.includes(way), 5_000, "the engine to be asked");
    leaving.abort(new Fault("internal_error", "the caller left"));
    wall.resume(way, way === "s06-late" ? "ok" : "s04");
    expect(await outcome).toMatchObject({ kinds, isAtEngine, attempts: 1 });
  }
});

test("nor is one that is slow given up for another when its caller has left", async () => {
  const leaving = new Cancellation();
  const timeouts = { first_part_spare_ms: 50 };
  const request = { stream: false, outputTokens_max: 4 };
  const outcome = outcomeOf(["s06-slow", "ok"], { request, signal: leaving, timeouts });
  await until(() => wall.asked.includes("s06-slow"), 5_000, "the engine to be asked");
  leaving.abort(new Fault("internal_error", "the caller left"));
  // If the caller were still connected, the engine would have been given up by now: for so short an answer, its
  // time-out is 255 ms.
  await Bun.sleep(600);
  wall.resume("s06-slow", "ok");
  expect(await outcome).toMatchObject({ kinds: ["answered"], attempts: 1 });
});

test("an engine whose breaker opens is not waited for when the caller has left", async () => {
  const leaving = new Cancellation();
  const parts = { health: health() };
  const outcome = outcomeOf(["s06-sick"], { request: wholly, signal: leaving, parts });
  await until(() => wall.asked.includes("s06-sick"), 5_000, "the engine to be asked");
  leaving.abort(new Fault("internal_error", "the caller left"));
  const route = modelTo(["s06-sick"], {}).routes[0]!;
  for (let count = 0; count < 3; count++) parts.health.ended(route, { kind: "broken" }, 1e9, 1e9);
  expect(await outcome).toMatchObject({ kinds: ["abandoned"], isAtEngine: true });
});

test("the conversation is needed while another engine may be asked, and no longer", async () => {
  expect((await outcomeOf(["ok-1", "ok-2"])).isFinalAtFirst).toBe(true);
  expect((await outcomeOf(["ok-1", "ok-2"], { request: collected })).isFinalAtFirst).toBe(false);
  expect((await outcomeOf(["ok-1"], { request: collected })).isFinalAtFirst).toBe(true);
});

test("an empty answer is asked for elsewhere; where all are empty, it is the answer", async () => {
  expect(await outcomeOf(["empty", "ok"])).toMatchObject({ fault: null, attempts: 2, route: "ok" });
  const told = await outcomeOf(["empty-1", "empty-2"]);
  expect(told.events.at(-1)).toEqual({ type: "response-end", reason: "stop" });
  expect(told.attempts).toBe(2);
});

test("an answer that a filter or the request's own limit ended before its first word is its answer, and asked for nowhere else", async () => {
  const told = await outcomeOf(["filtered", "ok"]);
  expect(told.events.at(-1)).toEqual({ type: "response-end", reason: "content_filter" });
  expect(told).toMatchObject({ fault: null, kinds: ["answered"], attempts: 1 });
  expect(wall.asked).toEqual(["filtered"]);
});

test("an empty answer that a stop text of the caller may have ended is its answer, unless its engine wrote nothing", async () => {
  const request = { stop: ["END"] };
  expect(await outcomeOf(["silent", "ok"], { request })).toMatchObject({ kinds: ["answered"], attempts: 1 });
  expect(await outcomeOf(["nothing", "ok"], { request })).toMatchObject({ attempts: 2, route: "ok" });
});

test("a route whose model says nothing stays well, and one that writes nothing, or says nothing of what it wrote, does not", async () => {
  const parts = { health: health() };
  const stateOf = async (way: string) => {
    for (let count = 0; count < 3; count++)
      expect(await outcomeOf([way, "ok"], { parts })).toMatchObject({ attempts: 2, route: "ok" });
    return parts.health.stateOf(modelTo([way], {}).routes[0]!, performance.now());
  };
  expect([await stateOf("silent"), await stateOf("nothing"), await stateOf("empty")]).toEqual([
    "closed",
    "open",
    "open",
  ]);
});

test("a caller that leaves in the moment in which it gets a slot gives the slot back", async () => {
  const leaving = new Cancellation();
  const slots = queues(() => performance.now());
  const way = { model: "ok", capacity: capacityOf({ concurrent_max: 1 }) };
  const claim = { organizationId: "other", tokens: 1, share: { weight: 1, priority: 0 } };
  const [route] = modelTo([way], {}).routes as [Route];
  const taken = slots.enter(route, claim);
  const asked = outcomeOf([way], { signal: leaving, parts: { queues: slots } });
  await until(() => slots.lengthOf(route) === 1, 5_000, "the request to wait");
  taken.release();
  leaving.abort(new Fault("internal_error", "the caller left"));
  expect(await asked).toMatchObject({ attempts: 0, fault: { message: "the caller left" } });
  expect(slots.open([route], claim)).toEqual([route]);
});

test("an outage is not multiplied: without budget a request that was sent is not sent elsewhere", async () => {
  const parts = { budget: noBudget };
  expect(await outcomeOf(["s04", "ok"], { parts })).toMatchObject({ fault: { code: "overloaded" }, attempts: 1 });
  // If no engine has received the request, another attempt multiplies no work.
  expect(await outcomeOf(["dead", "ok"], { parts })).toMatchObject({ fault: null, attempts: 2 });
});

test("an engine that is slow is given up early only where another may be asked", async () => {
  const timeouts = { first_part_spare_ms: 50, first_part_ms: 400 };
  expect(await outcomeOf(["s06", "ok"], { timeouts })).toMatchObject({ kinds: ["timeout", "answered"], route: "ok" });
  const begun_ms = performance.now();
  const patient = [
    outcomeOf(["s06"], { timeouts }),
    outcomeOf(["s06", "ok"], { timeouts, parts: { budget: noBudget } }),
  ];
  const tooks_ms = patient.map((told) => told.then(() => performance.now() - begun_ms));
  for (const told of await Promise.all(patient)) expect(told.fault?.code).toBe("upstream_timeout");
  expect(Math.min(...(await Promise.all(tooks_ms)))).toBeGreaterThan(350);
});

test("a long input is given longer", async () => {
  const timeouts = { first_part_spare_ms: 50, first_part_ms: 50 };
  const begun_ms = performance.now();
  expect((await outcomeOf(["s06"], { timeouts, inputTokens: 600 })).fault?.code).toBe("upstream_timeout");
  expect(performance.now() - begun_ms).toBeGreaterThan(300);
});

test("between two parts, a request with tools is given longer: engines may hold a call back until it is written", async () => {
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  let silence: Promise<void>;
  const engine = Bun.serve({
    port: 0,
    fetch: () =>
      new Response(
        new ReadableStream({
          async start(controller) {
            controller.enqueue(new TextEncoder().encode(chunk({ content: "I'll write it." }, null)));
            await silence;
            controller.enqueue(new TextEncoder().encode(chunk({}, "stop")));
            controller.close();
          },
        }),
        { headers: { "content-type": "text/event-stream" } },
      ),
  });
  const kindsWith = async (request: NonNullable<Options["request"]>) =>
    (await outcomeOf([{ model: "m", url: `${engine.url}v1` }], { timeouts: { idle_ms: 250 }, request })).kinds;
  silence = Bun.sleep(600);
  expect(await kindsWith({ tools: [{ kind: "function", name: "write_file" }] })).toEqual(["answered"]);
  // Without tools the engine is silent until it was given up, however late the timers of a busy machine are.
  const { promise, resolve } = Promise.withResolvers<void>();
  silence = promise;
  expect(await kindsWith({})).toEqual(["timeout"]);
  resolve();
  await engine.stop(true);
});

test("all attempts have one deadline", async () => {
  const timeouts = { first_part_spare_ms: 100, first_part_ms: 100, total_ms: 250 };
  const told = await outcomeOf(["s06-1", "s06-2", "s06-3", "s06-4", "s06-5", "s06-6"], { timeouts });
  expect(told.fault?.code).toBe("upstream_timeout");
  expect(told.attempts).toBeLessThan(5);
});

test("a request goes where its context fits, and one refused as too long to a larger one alone", async () => {
  const small = { model: "ok-small", contextTokens: 1000 };
  const large = { model: "ok-large", contextTokens: 50_000 };
  expect(await outcomeOf([small, large], { inputTokens: 900 })).toMatchObject({ route: "ok-small" });
  expect(await outcomeOf([small, large], { inputTokens: 1001 })).toMatchObject({ route: "ok-large", attempts: 1 });
  const request = { outputTokens_max: 500 };
  expect(await outcomeOf([small, large], { inputTokens: 900, request })).toMatchObject({
    route: "ok-large",
    attempts: 1,
  });
  const full = { model: "s12", contextTokens: 1000 };
  const peer = { model: "ok-peer", contextTokens: 1000 };
  expect(await outcomeOf([full, peer, large])).toMatchObject({
    fault: null,
    kinds: ["too_long", "answered"],
    route: "ok-large",
  });
  expect(await outcomeOf([full, peer])).toMatchObject({ fault: { code: "context_length_exceeded" }, attempts: 1 });
});

test("a grant that is lost between attempts ends them, with its own error", async () => {
  const lost = new Cancellation();
  const onAttempt = () => lost.abort(new Fault("storage_unavailable", "the lease was lost"));
  const told = await outcomeOf(["s04", "ok"], { signal: lost, onAttempt });
  expect(told).toMatchObject({ attempts: 1, fault: { code: "storage_unavailable" } });
});

test("a connection that had served before closes: the same engine is asked once more, on a new one", async () => {
  // An engine that keeps its connections open, and breaks each one that is used a second time.
  const answer = `data: ${JSON.stringify({ choices: [{ delta: { content: "hello" }, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`;
  const head = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${answer.length}\r\n\r\n`;
  const engine = Bun.listen<{ used: boolean }>({
    ...{ hostname: "127.0.0.1", port: 0 },
    socket: {
      open: (socket) => {
        socket.data = { used: false };
      },
      data: (socket) => {
        if (socket.data.used) return void socket.terminate();
        socket.data.used = true;
        socket.write(head + answer);
      },
    },
  });
  const ways = [{ model: "m", url: `http://127.0.0.1:${engine.port}/v1` }, "ok"];
  expect(await outcomeOf(ways)).toMatchObject({ kinds: ["answered"], attempts: 1 });
  expect(await outcomeOf(ways)).toMatchObject({ kinds: ["stale", "answered"], attempts: 2, route: "m", fault: null });
  engine.stop(true);
});

test("a refusal of the operator's key is told with its status, for the log", async () => {
  const ends: unknown[] = [];
  await outcomeOf(["forbidden", "ok"], { onAttempt: ({ end, route, model }) => ends.push([model, route.model, end]) });
  expect(ends[0]).toEqual(["acme/m", "forbidden", { kind: "refused", status: 401, said: "the wall says wrong_key" }]);
});
