/** Refuses requests for which there is no memory, or no descriptor for their connection. Each refusal is counted. */

import type { Shortage } from "../body/memory.ts";
import { Fault } from "../inference/fault.ts";
import { type Pause, small_bytes } from "../time/turns.ts";
import type { Bounds } from "./bounds.ts";
import type { Call } from "./call.ts";
import type { Observer } from "./observer.ts";

interface Needs {
  bounds: Bounds;
  metrics: Pick<Observer, "shed">;
}

/** The memory of a request beside its body, including the buffers of its streams. */
const request_bytes = 64 * 1024;

/**
 * Reserves the memory of a request with a body of this size. Throws Fault 429 `concurrency_limit_exceeded` if its key's
 * share is used up, 503 `overloaded` if the node's memory is.
 */
export function reserve(dependencies: Needs, call: Call, bytes: number): void {
  refuse(dependencies, call.memory?.growTo(request_bytes + bytes) ?? null);
}

/** As `reserve`, for an engine's answer. */
export function reserveAnswer(dependencies: Needs, call: Call, bytes: number): void {
  refuse(dependencies, call.memory?.answerTo(bytes) ?? null);
}

function refuse(dependencies: Needs, shortage: Shortage | null): void {
  if (shortage === null) return;
  dependencies.metrics.shed(shortage);
  throw tooMuch(shortage, dependencies.bounds.memory.limits.key_bytes_max);
}

/**
 * The pauses between the steps of work on this request's body: a large body takes turns with those of other requests.
 */
export function takesTurns({ bounds }: Pick<Needs, "bounds">, call: Call): Pause {
  const announced = Number(call.request.headers.get("content-length") ?? Number.POSITIVE_INFINITY);
  const isSmall = announced <= small_bytes && !call.request.headers.has("content-encoding");
  if (!isSmall && call.memory) call.takeTurns(bounds.turns.ofBody(call.memory.keyId));
  return call.pause;
}

/** Frees the memory of a body that is no longer needed, before the request's end. */
export function giveBackBody({ memory }: Call): void {
  memory?.shrinkTo(request_bytes);
}

function tooMuch(shortage: Shortage, key_bytes_max: number): Fault {
  const retryAfterSeconds = shortage === "key" ? 2 : 5;
  if (shortage === "key") {
    return new Fault(
      "concurrency_limit_exceeded",
      `The running requests of this API key would hold more than ${key_bytes_max} bytes together. Wait until some of them have ended.`,
      { retryAfterSeconds },
    );
  }
  return new Fault("overloaded", "The service has no memory left for this request. Please try again.", {
    retryAfterSeconds,
  });
}

/**
 * Throws Fault 503 `overloaded` if hardly a descriptor is left; the connection is then closed. Not called for probes.
 */
export function requireDescriptors({ bounds, metrics }: Needs): void {
  if (!bounds.pressure.descriptorsAreFew()) return;
  metrics.shed("descriptors");
  throw new Fault("overloaded", "The service has too many open connections. Please try again.", {
    retryAfterSeconds: 5,
  });
}
