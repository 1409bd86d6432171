/** One event of an engine's stream, as a decoder gets it: a large one was parsed before, in steps. Pure. */
import type { SseMessage } from "../sse/message.ts";

export interface EngineEvent extends SseMessage {
  parsed?: { value: unknown };
}

export function isBlank({ data, parsed }: EngineEvent): boolean {
  return !parsed && data.trim() === "";
}

/** Throws what JSON.parse throws. */
export function jsonOf({ data, parsed }: EngineEvent): unknown {
  return parsed ? parsed.value : JSON.parse(data);
}
