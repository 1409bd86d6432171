/**
 * The requests that a node sends itself to warm up, and their answers: the examples of the contract, in every protocol.
 */
import { jsonType, type Operation } from "../core/operations/operation.ts";
import type { Catalog, CatalogModel } from "../core/routing/catalog.ts";
import { yieldToEventLoop } from "../core/time/turns.ts";
import { exampleModel } from "../features/openapi/contract-model.ts";
import { operations } from "./operations.ts";

export interface Ask {
  path: string;
  headers: Record<string, string>;
  body: string;
}

const metered: readonly Operation[] = operations.filter((one) => one.metered !== undefined);

/**
 * Makes the requests from all examples for chat models of all protocols, streamed and not; operations for other models
 * have much less to warm up. Each is sent for one model of every kind of engine; an example that no model can answer is
 * left out.
 */
export function asksOf({ models }: Pick<Catalog, "models">): Ask[] {
  const protocolOf = ({ routes }: CatalogModel) => routes[0]!.upstream.protocol;
  const kinds = [...Map.groupBy(models.values(), protocolOf).values()];
  return metered.flatMap(({ examples }) =>
    examples
      .filter(({ kind = "chat" }) => kind === "chat")
      .flatMap(({ needs, contentType, request }) =>
        kinds.flatMap((alike) => {
          const model = exampleModel(alike, { needs });
          if (model === null) return [];
          const { path, headers = {}, body } = request(model);
          const streams = contentType === jsonType ? [false, true] : [true];
          return streams.map((stream) => ({ path, headers, body: JSON.stringify({ ...(body as object), stream }) }));
        }),
      ),
  );
}

/**
 * Starts an HTTP server that stands in for an engine of all protocols and answers every request as the contract's
 * examples do.
 */
export function startEngine(): { url: string; stop(): Promise<void> } {
  const answers = new Map(metered.map(({ path, success }) => [path, success.content]));
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    async fetch(request) {
      const { stream } = (await request.json()) as { stream?: boolean };
      const content = answers.get(new URL(request.url).pathname);
      if (!content) return new Response(null, { status: 404 });
      return stream ? streamed(String(content[streamType]?.example)) : Response.json(content[jsonType]?.example);
    },
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, stop: () => server.stop(true) };
}

const streamType = "text/event-stream";

/** A response that sends its frames one by one, each in its own turn of the event loop. */
function streamed(text: string): Response {
  const frames = text.split(/(?<=\n\n)/).map((frame) => new TextEncoder().encode(frame));
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await yieldToEventLoop();
      const frame = frames.shift();
      if (frame) controller.enqueue(frame);
      else controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": streamType } });
}
