/** The trace that a request continues: W3C Trace Context, as far as it can be trusted. */
import { type Context, createTraceState, trace } from "@opentelemetry/api";
import { parseTraceParent } from "@opentelemetry/core";

/** The longest `tracestate` that is passed on. */
const state_chars_max = 512;

export function parentOf(headers: { get(name: string): string | null }, context: Context): Context {
  const parent = parseTraceParent(headers.get("traceparent") ?? "");
  if (!parent) return context;
  const state = headers.get("tracestate");
  return trace.setSpanContext(context, {
    ...parent,
    isRemote: true,
    ...(state && state.length <= state_chars_max ? { traceState: createTraceState(state) } : {}),
  });
}
