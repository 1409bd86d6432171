// A proxy between the service and an engine. It forwards everything unchanged, and records the last request and its
// response.

export interface Exchange {
  path: string;
  asked: Record<string, unknown>;
  status: number;
  /** The body of the response, as text. */
  said: string;
}

export interface Recorder {
  root: string;
  /** Returns the last exchange and forgets it. Throws if there was none since the previous call. */
  take(): Exchange;
  stop(): Promise<void>;
}

export function startRecorder(engine: string): Recorder {
  let last: Exchange | null = null;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 255,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const body = await request.text();
      const init = request.method === "GET" ? {} : { body };
      const response = await fetch(engine + pathname, {
        method: request.method,
        headers: request.headers,
        keepalive: false,
        ...init,
      });
      const said = await response.text();
      const headers = { "content-type": response.headers.get("content-type") ?? "" };
      if (request.method === "POST") last = { path: pathname, asked: JSON.parse(body), status: response.status, said };
      return new Response(said, { status: response.status, headers });
    },
  });
  return {
    root: server.url.origin,
    take() {
      if (!last) throw new Error("the engine was not asked");
      const taken = last;
      last = null;
      return taken;
    },
    stop: () => server.stop(true),
  };
}
