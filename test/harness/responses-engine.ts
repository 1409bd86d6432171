// An engine that speaks Responses, over real sockets. It sends the response that the test sets, frame by frame at a
// given pace, and records the requests and whether the client closed the connection early.

export interface Play {
  /** The frames of a stream, as text; the next field is the body of an unstreamed response. */
  stream: string;
  whole: unknown;
  /** The wait between two frames, in milliseconds. */
  pace_ms?: number;
  /** Breaks the connection after this many frames. */
  cutAfter?: number;
}
/** The error response of an engine. */
export interface Refusal {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

export interface Asked {
  path: string;
  headers: Headers;
  body: Record<string, unknown>;
  framesSent: number;
  /** Whether the client closed the connection before the end of the response. */
  left: boolean;
}

export interface ResponsesEngine {
  /** The engine's address, with `/v1`. */
  url: string;
  /** Sets the response to every request from now on. */
  plays(play: Play | Refusal): void;
  asked: Asked[];
  stop(): void;
}

export function startResponsesEngine(): ResponsesEngine {
  const asked: Asked[] = [];
  const script: { play: Play | Refusal } = { play: { status: 500, body: {} } };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const body = (await request.json()) as Record<string, unknown>;
      const { play } = script;
      const call = { path: new URL(request.url).pathname, headers: request.headers, body, framesSent: 0, left: false };
      asked.push(call);
      if ("status" in play) return Response.json(play.body, { status: play.status, headers: play.headers ?? {} });
      if (!body.stream) return Response.json(play.whole);
      return new Response(streamOf(play, call), { headers: { "content-type": "text/event-stream" } });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    plays: (play) => void Object.assign(script, { play }),
    asked,
    stop: () => void server.stop(true),
  };
}

function streamOf({ stream, pace_ms = 0, cutAfter }: Play, call: Asked): ReadableStream<Uint8Array> {
  const frames = stream.split(/(?<=\n\n)/);
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      if (pace_ms > 0) await Bun.sleep(pace_ms);
      if (call.left) return;
      const frame = frames[call.framesSent];
      if (call.framesSent === cutAfter) return controller.error(new Error("the connection is cut, as asked"));
      if (frame === undefined) return controller.close();
      controller.enqueue(encoder.encode(frame));
      call.framesSent += 1;
    },
    cancel: () => void Object.assign(call, { left: true }),
  });
}
