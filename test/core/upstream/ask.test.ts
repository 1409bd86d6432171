/**
 * Whatever an engine does on the wire, the stream that callers get is grammatical and reveals nothing of the engine.
 */
import { afterAll, describe, expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import { Cancellation, type Signal } from "../../../src/core/time/cancellation.ts";
import { yieldToEventLoop } from "../../../src/core/time/turns.ts";
import { ask, type Patience } from "../../../src/core/upstream/ask.ts";
import type { AttemptEnd } from "../../../src/core/upstream/attempt.ts";
import { type Client, client } from "../../../src/core/upstream/http1/client.ts";
import { ReadPauses } from "../../../src/core/upstream/http1/read-pauses.ts";
import type { UpstreamTimeouts } from "../../../src/core/upstream/target.ts";
import { Listened } from "../../harness/listened.ts";
import { patience } from "../../harness/patience.ts";
import { saying } from "../../harness/request.ts";
import { until } from "../../harness/until.ts";
import { grammarProblem } from "../protocol/grammar.ts";
import { upstreamOf } from "../routing/models.ts";
import { engineClient, question } from "./asking.ts";

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const ending = `${chunk({}, "stop")}data: [DONE]\n\n`;
const hello = chunk({ content: "hello" }) + ending;
const wholeHello = {
  choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
};
const engines = engineClient();
const sse = { "content-type": "text/event-stream" };
const utf8 = new TextEncoder();
const never = new Promise<void>(() => {});

/** An event stream that `write` writes, and that ends when `write` returns. */
function streamed(write: (say: (text: string) => void) => Promise<void>): Response {
  const body = new ReadableStream({
    async start(controller) {
      await write((text) => controller.enqueue(utf8.encode(text)));
      controller.close();
    },
  });
  return new Response(body, { headers: sse });
}

let closed: (() => void) | null = null;
let seen = Promise.withResolvers<void>();
const server = Bun.serve({
  port: 0,
  idleTimeout: 0,
  fetch: async (incoming) => {
    const path = new URL(incoming.url).pathname;
    const body = await incoming.text();
    return (behaviours[path.slice(1).split("/")[0]!] ?? behaviours.missing!)(body, incoming);
  },
});
afterAll(() => server.stop(true));

const behaviours: Record<string, (body: string, incoming: Request) => Response | Promise<Response>> = {
  fine: () => new Response(hello, { headers: sse }),
  whole: () => Response.json(wholeHello),
  shouted: () => new Response(hello, { headers: { "content-type": "Text/Event-Stream; charset=UTF-8" } }),
  "shouted-whole": () => Response.json(wholeHello, { headers: { "content-type": "Application/JSON" } }),
  missing: () => new Response("secret-engine: no such model", { status: 404 }),
  html: () => new Response("<h1>secret-engine</h1>", { headers: { "content-type": "text/html" } }),
  teapot: () => Response.json({ error: { message: "secret-engine says no", param: "temperature" } }, { status: 400 }),
  context: () =>
    Response.json({ error: { message: "This model's maximum context length is 4096 tokens" } }, { status: 400 }),
  busy: () => new Response("busy", { status: 429, headers: { "retry-after": "86400" } }),
  broken: () => new Response("{oops", { headers: { "content-type": "application/json" } }),
  // A client that follows the redirect would get an answer.
  redirect: () => new Response(null, { status: 302, headers: { location: "/fine" } }),
  cut: () => new Response(chunk({ content: "hel" }), { headers: sse }),
  silent: () => new Promise<Response>(() => {}),
  stalled: (_, incoming) =>
    streamed((say) => {
      say(chunk({ content: "hel" }));
      incoming.signal.addEventListener("abort", () => closed?.());
      return never;
    }),
  // An engine that sends the head of its answer at once, as engines do that have yet to read the request.
  announced: () =>
    streamed(async (say) => {
      say(chunk({ role: "assistant" }));
      await Bun.sleep(400);
      say(hello);
    }),
  // An engine that sends the first part, then a comment every 20 ms, and ends after 400 ms, except at `/forever/`.
  alive: (_, incoming) =>
    streamed(async (say) => {
      say(chunk({ content: "hello" }));
      for (let said = 0; incoming.url.includes("/forever/") || said < 20; said++) {
        await Bun.sleep(20);
        if (incoming.signal.aborted) return never;
        say(": still here\n\n");
      }
      say(ending);
    }),
  endless: (_, incoming) =>
    new Response(
      new ReadableStream({
        async pull(controller) {
          await Bun.sleep(5);
          if (!incoming.signal.aborted) controller.enqueue(utf8.encode(chunk({ content: "on " })));
        },
      }),
      { headers: sse },
    ),
  // An engine that sends the first part and waits until the test has seen it. Then it sends the other words one by one,
  // and then the end of the answer, which it leaves out at `/silent/`.
  gulps: (_, incoming) =>
    streamed(async (say) => {
      say(chunk({ content: "1 " }));
      await seen.promise;
      for (const word of ["2 ", "3 ", "4 "]) {
        say(chunk({ content: word }));
        await Bun.sleep(5);
      }
      if (incoming.url.includes("/silent/")) return never;
      say(ending);
    }),
  huge: () => new Response(`data: ${"x".repeat(17 * 1024 * 1024)}\n\n`, { headers: sse }),
};

async function outcomeOf(
  path: string,
  options: {
    timeouts?: Partial<UpstreamTimeouts>;
    spare?: Patience["spare"];
    signal?: Signal;
    onBatch?: (batch: InferenceEvent[]) => void;
    origin?: string;
    gather_ms?: number;
    through?: Client;
  } = {},
) {
  const events: InferenceEvent[] = [];
  const url = options.origin ?? `http://127.0.0.1:${server.port}/${path}`;
  const { signal = new Cancellation(), gather_ms = 0, through = engines, spare = null } = options;
  const patient = { ...patience(options.timeouts), spare };
  const asked = question(url, { client: through, patience: patient, signal, gather_ms });
  const upstream = upstreamOf(url, { name: "secret-engine", apiKey: "secret-key" });
  for await (const batch of ask({ ...asked, upstream })) {
    events.push(...batch);
    options.onBatch?.(batch);
  }
  expect(grammarProblem(events)).toBeNull();
  return events;
}

async function faultOf(path: string, options: Parameters<typeof outcomeOf>[1] = {}): Promise<Fault> {
  const last = (await outcomeOf(path, options)).at(-1);
  if (last?.type !== "response-failed") throw new Error(`expected a failure, got ${last?.type}`);
  expect(last.fault.message).not.toMatch(/secret|127\.0\.0\.1|no such model/);
  return last.fault;
}

describe("an engine", () => {
  test.each([
    ["that streams", "fine"],
    ["that does not stream though it was asked to", "whole"],
    ["whose media type is in capitals", "shouted"],
    ["whose media type of a whole answer is in capitals", "shouted-whole"],
  ])("%s is read", async (_, path) => {
    expect((await outcomeOf(path)).at(-1)).toEqual({ type: "response-end", reason: "stop" });
  });

  const refusals: [string, string, number | undefined][] = [
    ["missing", "upstream_unavailable", 120],
    ["html", "upstream_unavailable", 1],
    ["broken", "upstream_unavailable", 1],
    ["redirect", "upstream_unavailable", 1],
    ["teapot", "invalid_value", undefined],
    ["context", "context_length_exceeded", undefined],
    ["busy", "capacity_exceeded", 60],
    ["cut", "upstream_unavailable", 1],
    ["huge", "upstream_unavailable", 1],
  ];
  for (const [path, code, wait] of refusals) {
    test(`${path}: ${code}, and nothing of the engine's words`, async () => {
      const fault = await faultOf(path);
      expect(fault.code).toBe(code as Fault["code"]);
      expect(fault.details.retryAfterSeconds).toBe(wait);
    });
  }

  test("that refuses a field of ours has the field named", async () => {
    expect((await faultOf("teapot")).details.param).toBe("temperature");
  });

  test("is not asked for what its protocol has no words for, which is the caller's to change", async () => {
    const citations = { protocol: "anthropic-messages", feature: "citations", param: "messages[0]" } as const;
    for (const [protocol, more, param] of [
      ["anthropic-messages", { sampling: { presencePenalty: 1 } }, "presence_penalty"],
      ["openai-chat", { nativeNeeds: [citations] }, "messages[0]"],
    ] as const) {
      const asked = { client: engines, request: saying("hi", more as Partial<InferenceRequest>) };
      const [told] = await Array.fromAsync(ask(question("http://127.0.0.1:1/v1", asked, protocol)));
      expect(told).toMatchObject([{ fault: { code: "unsupported_feature", details: { param } } }]);
    }
  });

  const deltas = (events: InferenceEvent[]) =>
    events.flatMap((event) => (event.type === "part-delta" ? [event.delta] : []));
  const inGulps = async (path: string, options: Parameters<typeof outcomeOf>[1]) => {
    const batches: string[][] = [];
    seen = Promise.withResolvers();
    const onBatch = (batch: InferenceEvent[]) => {
      batches.push(deltas(batch));
      seen.resolve();
    };
    return { events: await outcomeOf(path, { onBatch, ...options }), batches };
  };

  test("whose answer nobody streams is read in gulps after its first part, and to its end at once", async () => {
    const { events, batches } = await inGulps("gulps", { gather_ms: 60_000 });
    expect(batches).toEqual([["1 "], ["2 ", "3 ", "4 "]]);
    expect(events.at(-1)).toEqual({ type: "response-end", reason: "stop" });
  });

  test("that falls silent in a gulp has said what came before", async () => {
    const { events } = await inGulps("gulps/silent", { gather_ms: 50, timeouts: { idle_ms: 300 } });
    expect(deltas(events).join("")).toBe("1 2 3 4 ");
    expect(events.at(-1)).toMatchObject({ type: "response-failed", fault: { code: "upstream_timeout" } });
  });

  test("that writes faster than a busy node reads is read in portions after its first part", async () => {
    // The client's sockets are paused for 100 ms after each read.
    const through = client({ pauses: new ReadPauses({ shortest_ms: 100, longest_ms: 100 }) });
    const inPortions = async () => {
      const leaving = new Cancellation();
      let batches = 0;
      const onBatch = () => {
        batches += 1;
        if (batches === 5) leaving.abort("enough");
      };
      const events = await outcomeOf("endless", { through, signal: leaving, onBatch });
      return deltas(events).length > 3 * batches;
    };
    // A process whose timers are late pauses no sockets, so the test gets more than one try on a machine that is busy
    // with other work.
    await until(inPortions, 20_000, "portions of several parts").finally(() => through.close());
  }, 30_000);

  test("that is not there is unavailable", async () => {
    const dead = Bun.serve({ port: 0, fetch: () => new Response() });
    const origin = `http://127.0.0.1:${dead.port}`;
    await dead.stop(true);
    expect((await faultOf("", { origin })).code).toBe("upstream_unavailable");
  });

  test("that never answers is given up", async () => {
    expect((await faultOf("silent", { timeouts: { first_part_ms: 50 } })).code).toBe("upstream_timeout");
  });

  describe("that announces its answer long before the first part", () => {
    test("has the time for the first part, and not that between two parts", async () => {
      const events = await outcomeOf("announced", { timeouts: { idle_ms: 100, first_part_ms: 5_000 } });
      expect(events.at(-1)).toEqual({ type: "response-end", reason: "stop" });
    });

    test("has no more than that time", async () => {
      const timeouts = { idle_ms: 5_000, first_part_ms: 100 };
      expect((await faultOf("announced", { timeouts })).code).toBe("upstream_timeout");
    });

    test("loses the request to an engine that stands ready, as one that is silent does", async () => {
      for (const isTaken of [true, false]) {
        let asked = 0;
        const take = () => {
          asked += 1;
          return isTaken;
        };
        const events = await outcomeOf("announced", { timeouts: { idle_ms: 5_000 }, spare: { after_ms: 100, take } });
        expect([asked, events.at(-1)!.type]).toEqual([1, isTaken ? "response-failed" : "response-end"]);
      }
    });
  });

  test("that falls silent in the middle is given up", async () => {
    expect((await faultOf("stalled", { timeouts: { idle_ms: 50 } })).code).toBe("upstream_timeout");
  });

  test("that shows signs of life between two parts has ten times as long, and no longer", async () => {
    const alive = await outcomeOf("alive", { timeouts: { idle_ms: 100 } });
    expect(alive.at(-1)).toEqual({ type: "response-end", reason: "stop" });
    const begun_ms = performance.now();
    expect((await faultOf("alive/forever/", { timeouts: { idle_ms: 60 } })).code).toBe("upstream_timeout");
    expect(performance.now() - begun_ms).toBeGreaterThan(500);
  });

  test("that never comes to an end is given up, however steadily it writes", async () => {
    expect((await faultOf("endless", { timeouts: { total_ms: 100, idle_ms: 5_000 } })).code).toBe("upstream_timeout");
  });

  describe("that writes on while its caller does not read", () => {
    /**
     * Reads two batches, pauses for 400 ms, and reads further batches, both those that came during the pause and later
     * ones, but not to the end.
     */
    async function readAfterAPause(timeouts: Partial<UpstreamTimeouts>) {
      const ends: AttemptEnd[] = [];
      const url = `http://127.0.0.1:${server.port}/endless`;
      const ended = (end: AttemptEnd) => void ends.push(end);
      const events = ask(question(url, { client: engines, patience: patience(timeouts), ended }));
      for (let batches = 0; batches < 2; batches++) await events.next();
      await Bun.sleep(400);
      let last: InferenceEvent | undefined;
      for (let batches = 0; batches < 20; batches++) {
        const { done, value } = await events.next();
        if (done) break;
        last = value.at(-1);
      }
      await events.return();
      return { last, ends };
    }

    test("is read further, however long the pause was", async () => {
      expect(await readAfterAPause({ idle_ms: 100 })).toEqual({
        last: expect.objectContaining({ type: "part-delta" }),
        ends: [{ kind: "abandoned" }],
      });
    });

    test("is let go when the time for the whole answer passes, though the caller never reads on", async () => {
      const ends: AttemptEnd[] = [];
      const url = `http://127.0.0.1:${server.port}/endless`;
      const ended = (end: AttemptEnd) => void ends.push(end);
      const events = ask(question(url, { client: engines, patience: patience({ total_ms: 100 }), ended }));
      await events.next();
      await until(() => ends.length > 0, 5_000, "the end of the attempt");
      expect(ends).toEqual([{ kind: "abandoned" }]);
      await events.return();
    });

    test("is not blamed when the time for the whole answer passes meanwhile", async () => {
      expect(await readAfterAPause({ total_ms: 100 })).toEqual({
        last: { type: "response-failed", fault: expect.objectContaining({ code: "upstream_timeout" }) },
        ends: [{ kind: "abandoned" }],
      });
    });
  });

  test("that closes its stream some time after the end of its answer serves the next request on the same connection", async () => {
    const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let requests = 0;
    let connections = 0;
    let closeStream = () => {};
    const engine = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: () => void connections++,
        data(socket, bytes) {
          if (!bytes.toString().startsWith("POST")) return;
          requests += 1;
          socket.write(`${head}${hello.length.toString(16)}\r\n${hello}\r\n`);
          closeStream = () => void socket.write("0\r\n\r\n");
        },
      },
    });
    const again = async () => {
      await outcomeOf("", { origin: `http://127.0.0.1:${engine.port}` });
      // After these turns, a connection that is no longer read would be closed.
      for (let turn = 0; turn < 10; turn++) await yieldToEventLoop();
      closeStream();
      return connections < requests;
    };
    await until(again, 3_000, "a connection to be used again");
    engine.stop(true);
  });

  test("whose answer was read to its end keeps the connection, streamed or whole", async () => {
    const connections = new Set<string>();
    const engine = Bun.serve({
      port: 0,
      fetch: (incoming, serving) => {
        connections.add(`${serving.requestIP(incoming)?.port}`);
        const path = new URL(incoming.url).pathname.slice(1).split("/")[0];
        return (behaviours[path!] ?? behaviours.missing!)("", incoming);
      },
    });
    for (let count = 0; count < 10; count++) {
      for (const path of ["fine", "whole"]) {
        expect((await outcomeOf("", { origin: `http://127.0.0.1:${engine.port}/${path}` })).at(-1)?.type).toBe(
          "response-end",
        );
      }
    }
    await engine.stop(true);
    expect(connections.size).toBeLessThan(4);
  });

  test("whatever it does, nobody listens to the caller any more when its answer is over", async () => {
    const signal = new Listened();
    for (const path of ["fine", "whole", "missing", "html", "broken", "cut"]) await outcomeOf(path, { signal });
    await outcomeOf("silent", { signal, timeouts: { first_part_ms: 20 } });
    await outcomeOf("fine", { signal, origin: "http://127.0.0.1:1/v1" });
    expect(signal.listeners).toBe(0);
    await outcomeOf("stalled", { signal, onBatch: () => signal.abort(new Fault("draining", "Over.")) });
    expect(signal.listeners).toBe(0);
  });

  test("is let go at once when the caller leaves", async () => {
    const abort = new Cancellation();
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const fault = await faultOf("stalled", {
      signal: abort,
      onBatch: () => abort.abort(new Fault("draining", "The service is restarting.")),
    });
    expect(fault.code).toBe("draining");
    await gone;
  });
});
