/** One event of an engine's stream, as a decoder gets it. A large event's JSON is parsed before, in steps. Pure. */
import type { SseMessage } from "../sse/message.ts";

export interface EngineEvent extends SseMessage {
  parsed?: { value: unknown };
}

export function isBlank({ data, parsed }: EngineEvent): boolean {
  return !parsed && data.trim() === "";
}

/** The event's JSON. Throws the SyntaxError of JSON.parse. */
export function jsonOf({ data, parsed }: EngineEvent): unknown {
  return parsed ? parsed.value : JSON.parse(data);
}
