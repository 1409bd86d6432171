// An engine that can be stopped and started at its port while requests run, and that writes down who was there at once.

import type { Server } from "bun";

export interface Asked {
  /** The body's. */
  model: string;
  user: string;
  cacheSalt: string | undefined;
  headers: Headers;
}

export interface Engine {
  /** Base URL, up to and with /v1; the same after each start. */
  url: string;
  asked: Asked[];
  /** How long it thinks. */
  delay_ms: number;
  /** Answers 503 to all, its check included. */
  isSick: boolean;
  /** What its metrics say of requests that wait. */
  waiting: number;
  inFlight: number;
  /** The most that were in flight at once; may be set back. */
  most: number;
  checks: number;
  start(): void;
  /** With all its connections. */
  stop(): Promise<void>;
}

const frame = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
export const words = "all is well";
const answer =
  frame({ choices: [{ index: 0, delta: { content: words }, finish_reason: null }] }) +
  frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }) +
  frame({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } }) +
  "data: [DONE]\n\n";

/** Whoever has asked may leave before. */
async function thought(delay_ms: number, signal: AbortSignal): Promise<void> {
  const left = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  await Promise.race([Bun.sleep(delay_ms), left]);
}

/** `port` 0: any. */
export function startEngine({ hostname = "127.0.0.1", port: wanted = 0 } = {}): Engine {
  let server: Server<undefined> | null = null;
  let port = wanted;
  const engine: Engine = {
    ...{ url: "", asked: [], delay_ms: 20, isSick: false, waiting: 0, inFlight: 0, most: 0, checks: 0 },
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
    await thought(engine.delay_ms, request.signal);
    engine.inFlight -= 1;
    if (engine.isSick) return Response.json({ error: { message: "overloaded" } }, { status: 503 });
    return new Response(answer, { headers: { "content-type": "text/event-stream" } });
  }

  engine.start();
  return engine;
}
