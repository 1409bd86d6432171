/**
 * Structured logs: one JSON line a request, on stderr. No content and no secret. Upstreams
 * are named where one refuses us; who needs the route of a request asks `sluice request show`.
 */
import { Fault } from "../inference/fault.ts";
import type { Call } from "./call.ts";

export interface Log {
  request(call: Call, status: number): void;
  event(level: "info" | "warn" | "error", message: string, fields?: Record<string, unknown>): void;
  /** Writes what is still buffered. */
  flush(): void;
}

const flush_ms = 100;
const buffered_lines_max = 500;

export function logTo(write: (text: string) => void): Log {
  let lines: string[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;

  function flush() {
    clearTimeout(timer);
    timer = undefined;
    if (lines.length === 0) return;
    const text = lines.join("");
    lines = [];
    write(text);
  }

  // A system call a line is a tenth of a small request's cost; a tenth of a second is soon enough to read.
  function line(fields: Record<string, unknown>) {
    lines.push(`${JSON.stringify(fields)}\n`);
    if (lines.length >= buffered_lines_max) flush();
    else timer ??= setTimeout(flush, flush_ms);
  }

  return {
    request(call, status) {
      const { notes } = call;
      line({
        time: new Date().toISOString(),
        level: status >= 500 ? "error" : "info",
        event: "request",
        request_id: call.requestId,
        method: call.request.method,
        route: call.route,
        status: call.left ? 499 : status,
        ms: Math.round(call.elapsed_ms() * 10) / 10,
        organization: notes.organization,
        key: notes.key,
        model: notes.model,
        stream: notes.stream,
        outcome: notes.outcome,
        first_part_ms: notes.firstPart_ms,
        input_tokens:
          notes.usage && notes.usage.inputTokens + notes.usage.cachedInputTokens + notes.usage.cacheWriteTokens,
        output_tokens: notes.usage?.outputTokens,
        usage_source: notes.usage?.source,
        code: notes.code,
        cause: notes.cause === undefined ? undefined : causeOf(notes.cause),
      });
    },
    event(level, message, fields = {}) {
      line({ time: new Date().toISOString(), level, event: message, ...fields });
    },
    flush,
  };
}

const cause_chars_max = 2000;

/** Why, for operators. Of a defect the stack, of an outage the words. */
function causeOf(cause: unknown): string {
  if (cause instanceof Fault) return causeOf(cause.details.cause ?? cause.message);
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
  return text.slice(0, cause_chars_max);
}
