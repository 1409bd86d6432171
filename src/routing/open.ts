/** ROUTING: which engine serves. Until the first part another route could be tried; after it, never. */
import type { InferenceEvent } from "../inference/event.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { ResponseIdentity } from "../protocol/codec.ts";
import { ask } from "../upstream/ask.ts";
import { upstreamCodecs } from "../upstream/codecs.ts";
import { type CatalogModel, type Route, refusalAt } from "./catalog.ts";
import { choose } from "./choose.ts";

export interface OpenedEvents extends AsyncIterable<InferenceEvent[]> {
  next(): Promise<IteratorResult<InferenceEvent[], void>>;
  /** Aborts the request to the engine, and sweeps up; for whoever stops before the end. */
  return(): Promise<IteratorResult<InferenceEvent[], void>>;
  [Symbol.asyncIterator](): OpenedEvents;
}

export interface Opened {
  route: Route;
  events: OpenedEvents;
  /** Set where a usage window alone is why the engine may not write more than so many tokens. */
  windowTokens: number | null;
}

/** Output tokens that an answer may have. */
export interface OutputRoom {
  /** By the model and its context. */
  allowed: number;
  /** By what is held so far. */
  held: number;
}

export interface RouterSettings {
  /** Up to this cap an answer that nobody streams is asked for whole. */
  unstreamed_tokens_max: number;
}

/** Opens the request at one of the model's engines. Nothing is sent before the first event is asked for. */
export function open(
  model: CatalogModel,
  request: InferenceRequest,
  room: OutputRoom,
  identity: ResponseIdentity,
  signal: AbortSignal,
  settings: RouterSettings,
): Opened {
  const able = model.routes.filter((candidate) => refusalAt(candidate, request) === null);
  const route = choose(able, request.cacheKey === undefined ? Math.random() : affinity(request.cacheKey));
  const codec = upstreamCodecs[route.upstream.protocol];
  const cap = Math.min(request.outputTokens_max ?? room.allowed, room.allowed);
  const stream = request.stream || cap > settings.unstreamed_tokens_max;
  // An answer that comes whole cannot be ended on its way, nor its hold grow.
  const windowTokens = !stream && room.held < cap ? room.held : null;
  // A cap above what is allowed is lowered: the answer then ends with `length`.
  const isCapped = request.outputTokens_max !== undefined || windowTokens !== null;
  const asked = isCapped ? { ...request, outputTokens_max: windowTokens ?? cap } : request;
  const { upstream } = route;
  return {
    route,
    windowTokens,
    events: ask({
      ...{ upstream, codec, model: route.model, stream, identity, signal },
      instructionsInside: route.instructionsInside,
      request: asked,
      outputTokens_max: room.allowed,
    }),
  };
}

/** The same, with the engine asked at once: what it says waits until it is read. Whoever does not read it, ends it. */
export function ahead(opened: Opened): Opened {
  const { events } = opened;
  let first: ReturnType<Opened["events"]["next"]> | null = events.next();
  return {
    ...opened,
    events: {
      next() {
        const next = first ?? events.next();
        first = null;
        return next;
      },
      return: () => events.return(),
      [Symbol.asyncIterator]() {
        return this;
      },
    },
  };
}

/** A stable number from 0 to 1. */
function affinity(key: string): number {
  return Number(BigInt.asUintN(32, BigInt(Bun.hash(key)))) / 2 ** 32;
}
