// An engine that can be stopped and started at its port while requests run, and that records its requests and how many it
// had at once.

import type { Server } from "bun";

export interface Asked {
  /** The model that the body names. */
  model: string;
  user: string;
  cacheSalt: string | undefined;
  headers: Headers;
}

export interface Engine {
  /** Base URL, up to and with /v1; the same after each start. */
  url: string;
  asked: Asked[];
  /** How long the engine thinks before its answer. */
  delay_ms: number;
  /** Whether the engine answers 503 to everything, even to checks. */
  isSick: boolean;
  /** The number of waiting requests that its metrics report. */
  waiting: number;
  inFlight: number;
  /** The most requests that were in flight at once; tests may reset it. */
  most: number;
  checks: number;
  /** Ends the thinking about all requests that are there now. */
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
    // biome-ignore lint/suspicious/noExplicitAny: what Sluice sends is looked at as it comes
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
