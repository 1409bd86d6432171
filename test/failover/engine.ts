// An engine that can be stopped and restarted on its port while requests run. It records its requests, and the largest
// number of concurrent ones.

import type { Server } from "bun";

export interface Asked {
  /** The model name in the request body. */
  model: string;
  user: string;
  cacheSalt: string | undefined;
  headers: Headers;
}

export interface Engine {
  /** The base URL, including /v1. It stays the same after a restart. */
  url: string;
  asked: Asked[];
  /** How long the engine waits before it responds, in milliseconds. */
  delay_ms: number;
  /** Whether the engine responds with 503 to every request, including health checks. */
  isSick: boolean;
  /** The number of waiting requests that the engine's metrics report. */
  waiting: number;
  inFlight: number;
  /** The largest number of concurrent requests so far; tests may reset it. */
  most: number;
  checks: number;
  /** Ends the wait of all current requests immediately. */
  hurry(): void;
  start(): void;
  /** Stops the engine and closes all its connections. */
  stop(): Promise<void>;
}

const frame = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
export const words = "all is well";
const answer =
  frame({ choices: [{ index: 0, delta: { content: words }, finish_reason: null }] }) +
  frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }) +
  frame({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } }) +
  "data: [DONE]\n\n";

/** Starts an engine. `port` 0 means any free port. */
export function startEngine({ hostname = "127.0.0.1", port: wanted = 0 } = {}): Engine {
  let server: Server<undefined> | null = null;
  let port = wanted;
  let hurried = Promise.withResolvers<void>();
  const engine: Engine = {
    ...{ url: "", asked: [], delay_ms: 20, isSick: false, waiting: 0, inFlight: 0, most: 0, checks: 0 },
    hurry() {
      hurried.resolve();
      hurried = Promise.withResolvers();
    },
    start() {
      server = Bun.serve({ hostname, port, fetch: served });
      port = server.port!;
      engine.url = `http://${hostname}:${port}/v1`;
    },
    async stop() {
      await server?.stop(true);
      server = null;
    },
  };

  async function served(request: Request): Promise<Response> {
    if (new URL(request.url).pathname === "/health") {
      engine.checks += 1;
      return new Response(null, { status: engine.isSick ? 503 : 200 });
    }
    if (new URL(request.url).pathname === "/metrics")
      return new Response(`vllm:num_requests_waiting{model_name="m"} ${engine.waiting}\n`);
    // biome-ignore lint/suspicious/noExplicitAny: the bodies of Sluice's requests are not validated here
    const body = (await request.json()) as any;
    engine.asked.push({
      model: body.model,
      user: body.messages.at(-1).content,
      cacheSalt: body.cache_salt,
      headers: request.headers,
    });
    engine.inFlight += 1;
    engine.most = Math.max(engine.most, engine.inFlight);
    const left = new Promise<void>((resolve) => request.signal.addEventListener("abort", () => resolve()));
    await Promise.race([Bun.sleep(engine.delay_ms), hurried.promise, left]);
    engine.inFlight -= 1;
    if (engine.isSick) return Response.json({ error: { message: "overloaded" } }, { status: 503 });
    return new Response(answer, { headers: { "content-type": "text/event-stream" } });
  }

  engine.start();
  return engine;
}
