// Two proxies for agents: one records the requests that an agent sends to the service, the other records and refuses
// all requests to other machines.

export interface Asked {
  /** The method; `WS` for a message on a WebSocket, which counts as a request. */
  method: string;
  path: string;
  headers: Headers;
  /** The parsed body; null if it is not JSON. */
  body: Record<string, unknown> | null;
  /** The length of the body in bytes. */
  bytes: number;
  /**
   * The status of the response. For a message on a WebSocket it is 200, or the status in the error event; for the
   * upgrade to a WebSocket it is 101.
   */
  status: number;
}

/** Returns a response to send in place of the service's own, or undefined to forward the request to the service. */
export type Instead = (asked: Omit<Asked, "status">, before: readonly Asked[]) => Response | undefined;

/**
 * A proxy between an agent and the service at `url`, or at the URL that a function returns for each request. It lists
 * the requests in the order of their responses.
 */
export function watched({ url: to, instead }: { url: string | (() => string); instead?: Instead }) {
  const asked: Asked[] = [];
  const server = Bun.serve<Passing>({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    websocket: {
      maxPayloadLength: 1024 * 1024 * 1024,
      open: ({ data }) => void asked.push({ ...data.head, status: 101 }),
      message: (socket, message) => socket.data.asks(String(message), socket),
      close: ({ data }) => data.service.close(),
    },
    async fetch(request, server) {
      const url = typeof to === "function" ? to() : to;
      const { pathname, search } = new URL(request.url);
      const text = await request.text();
      const isJson = request.headers.get("content-type")?.includes("json") ?? false;
      const body = isJson ? (JSON.parse(text) as Record<string, unknown>) : null;
      const entry = { method: request.method, path: pathname, headers: request.headers, body, bytes: text.length };
      const replaced = instead?.(entry, asked);
      if (!replaced && request.headers.has("sec-websocket-key")) {
        const service = await openedAt(url + pathname, request.headers);
        if (service && server.upgrade(request, { data: passing(service, entry, asked) })) return;
      }
      const response =
        replaced ??
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

/** The two ends of a WebSocket between an agent and the service. */
interface Passing {
  head: Omit<Asked, "status">;
  service: WebSocket;
  asks(text: string, agent: Bun.ServerWebSocket<Passing>): void;
}

/** Opens the WebSocket to the service. Returns null if the service refuses it. */
async function openedAt(url: string, from: Headers): Promise<WebSocket | null> {
  const headers = Object.fromEntries([...from].filter(([name]) => !/^(host|connection|upgrade|sec-.*)$/.test(name)));
  const socket = new WebSocket(url.replace("http", "ws"), { headers });
  const { promise, resolve } = Promise.withResolvers<WebSocket | null>();
  socket.onopen = () => resolve(socket);
  socket.onclose = () => resolve(null);
  return promise;
}

/** Forwards messages, and records each request with its status when the last event of its response arrives. */
function passing(service: WebSocket, head: Omit<Asked, "status">, asked: Asked[]): Passing {
  const open: Omit<Asked, "status">[] = [];
  return {
    head,
    service,
    asks(text, agent) {
      const body = JSON.parse(text) as Record<string, unknown>;
      open.push({ ...head, method: "WS", body, bytes: text.length });
      service.onmessage = ({ data }) => {
        const { type, status = 200 } = JSON.parse(String(data)) as { type: string; status?: number };
        const isLast = /^(error|response\.(completed|incomplete|failed))$/.test(type);
        const ended = isLast ? open.shift() : undefined;
        if (ended) asked.push({ ...ended, status });
        agent.send(String(data));
      };
      service.onclose = ({ code }) => agent.close(code === 1006 ? 1011 : code);
      service.send(text);
    },
  };
}

/**
 * Runs work with environment variables that direct its programs' traffic to a proxy. Throws if they tried to reach
 * another machine.
 */
export async function withinMachine<Result>(
  work: (env: Record<string, string>) => Promise<Result>,
  who = "They",
): Promise<Result> {
  const trap = outsideTrap();
  try {
    const result = await work(trap.env);
    if (trap.caught.length > 0) throw new Error(`${who} wanted to leave this machine: ${trap.caught.join(", ")}`);
    return result;
  } finally {
    trap.stop();
  }
}

/** A proxy that forwards nothing, and records every attempt to reach another machine. */
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
