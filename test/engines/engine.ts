// An engine that responds with exactly the bytes of a case; the requested model's name is the case's ID.

import { type Answer, engines } from "../core/protocol/pairs/wires.ts";
import type { Client, EngineCase } from "./case.ts";

export interface ScriptedEngine {
  /** The engine's URL, without `/v1`. */
  url: string;
  /** The bodies of the requests that the engine got, by the model's name. */
  asked: Map<string, Record<string, unknown>[]>;
  stop(): void;
}

/** The name of the healthy engine's model. */
export const spareModel = "spare";
/** What the healthy engine responds, and a case's engine where the case says nothing. */
export const spareAnswer: Answer = { reasoning: "", text: "SPARE OK", calls: [], end: "stop" };

export function startScriptedEngine(cases: readonly EngineCase[]): ScriptedEngine {
  const byId = new Map(cases.map((one) => [one.id, one]));
  const asked: ScriptedEngine["asked"] = new Map();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const body = (await request.json()) as Record<string, unknown>;
      const model = String(body.model);
      asked.set(model, [...(asked.get(model) ?? []), body]);
      const one = byId.get(model.replace(/ with a spare$/, ""));
      const protocol = protocolOf(new URL(request.url).pathname);
      const healthy = engines[protocol];
      if (body.stream || one?.answerBoth)
        return answer(one?.engine_stream ?? healthy.stream(spareAnswer), one?.send?.sse === true);
      return answer(one?.engine_whole ?? JSON.stringify(healthy.whole(spareAnswer)), false);
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, asked, stop: () => void server.stop(true) };
}

function protocolOf(path: string): Client {
  if (path.endsWith("/messages")) return "messages";
  return path.endsWith("/responses") ? "responses" : "chat";
}

/**
 * The response with these bytes, which may begin with an HTTP head of their own. The frames of a stream are written one
 * at a time.
 */
function answer(bytes: string, isStream: boolean): Response {
  const [, status, head, body] = /^HTTP\/1\.1 (\d+)[^\n]*\n((?:[^\n]+\n)*)\n([\s\S]*)$/.exec(bytes) ?? [];
  if (status !== undefined) {
    const headers = new Headers(
      head!
        .trim()
        .split("\n")
        .map((line) => line.split(/: (.*)/).slice(0, 2) as [string, string]),
    );
    return new Response(body, { status: Number(status), headers });
  }
  if (!isStream && /^[{[]/.test(bytes)) return new Response(bytes, { headers: { "content-type": "application/json" } });
  const frames = bytes.split(/(?<=\n\n)/);
  const stream = new ReadableStream({
    async pull(controller) {
      const frame = frames.shift();
      if (frame === undefined) return controller.close();
      controller.enqueue(new TextEncoder().encode(frame));
      await Bun.sleep(0);
    },
  });
  return new Response(stream, { headers: { "content-type": "text/event-stream" } });
}
