/** Checks the grammar of event streams (src/core/inference/event.ts). Returns the problem, or null. */
import type { InferenceEvent } from "../../../src/core/inference/event.ts";

export function grammarProblem(events: readonly InferenceEvent[]): string | null {
  const open = new Set<number>();
  let parts = 0;
  let started = false;
  let over = false;
  for (const [at, event] of events.entries()) {
    if (over) return `${event.type} after the end, at ${at}`;
    if (event.type === "response-failed") {
      over = true;
      continue;
    }
    if (event.type === "response-start") {
      if (started) return "a second response-start";
      started = true;
      continue;
    }
    if (!started) return `${event.type} before response-start`;
    if (event.type === "part-start") {
      if (event.index !== parts) return `part ${event.index} where ${parts} was next`;
      parts += 1;
      open.add(event.index);
    } else if (event.type === "part-delta") {
      if (!open.has(event.index)) return `a delta of part ${event.index}, which is not open`;
    } else if (event.type === "part-end") {
      if (!open.delete(event.index)) return `the end of part ${event.index}, which is not open`;
    } else if (event.type === "response-end") {
      if (open.size > 0) return `the end with ${open.size} open parts`;
      over = true;
    }
  }
  return over ? null : "no terminal event";
}
