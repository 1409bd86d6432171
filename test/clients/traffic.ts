// What an agent asks of the service, remembered on the way; and a trap for whatever it would ask of others.

export interface Asked {
  method: string;
  path: string;
  headers: Headers;
  /** The parsed body; null where there is none. */
  body: Record<string, unknown> | null;
  status: number;
}

/** Answers in the service's place; undefined lets the request through. */
export type Instead = (asked: Omit<Asked, "status">, before: readonly Asked[]) => Response | undefined;

/** Stands between an agent and the service at `url`. Its requests come in the order in which they were answered. */
export function watched({ url, instead }: { url: string; instead?: Instead }) {
  const asked: Asked[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const text = await request.text();
      const body = text === "" ? null : (JSON.parse(text) as Record<string, unknown>);
      const entry = { method: request.method, path: pathname, headers: request.headers, body };
      const response =
        instead?.(entry, asked) ??
        (await fetch(url + pathname + search, {
          method: request.method,
          headers: request.headers,
          ...(text === "" ? {} : { body: text }),
          signal: request.signal,
        }));
      asked.push({ ...entry, status: response.status });
      return response;
    },
  });
  return { asked, url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true) };
}

/** A proxy that lets nothing through: whatever wants to leave this machine has to ask it, and is remembered. */
export function outsideTrap() {
  const caught: string[] = [];
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, bytes) {
        caught.push(new TextDecoder().decode(bytes).split("\r\n", 1)[0] ?? "");
        socket.end();
      },
    },
  });
  const proxy = `http://127.0.0.1:${listener.port}`;
  return {
    caught,
    env: { HTTPS_PROXY: proxy, HTTP_PROXY: proxy, NO_PROXY: "localhost,127.0.0.1" },
    stop: () => listener.stop(true),
  };
}
