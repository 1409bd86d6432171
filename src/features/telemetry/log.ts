/**
 * Structured logs on stderr, one line a request, as JSON or logfmt, without content or secrets. Upstreams are named as
 * in the configuration; an address appears only to tell engines behind one name apart.
 */
import type { Call } from "../../core/http/call.ts";
import { callersWords } from "../../core/http/call-notes.ts";
import type { Log } from "../../core/http/log.ts";
import { Fault } from "../../core/inference/fault.ts";
import { masked } from "../../core/inference/masked.ts";
import { promptTokens } from "../../core/inference/usage.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { Tried } from "../../core/usage/record.ts";
import { floodGate } from "./flood.ts";
import { type LogFormat, lineOf } from "./log-line.ts";

/** The levels, from the least to the most severe. A log has the lines of its level and those above it. */
const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

interface LogOptions {
  write(text: string): void;
  /** The number of this worker, on a node that has several. */
  worker?: number | undefined;
  clock: Clock;
  /** The settings in force. Called for each line. */
  settings(): { level: LogLevel; format: LogFormat; engine_text?: boolean };
  /** The routes whose requests are logged at `debug`, unless they fail with `internal_error`. */
  probes?: ReadonlySet<string>;
  /** Words that no cause may contain: the addresses of engines, and their names of models. */
  hidden?(): readonly string[];
}

const flush_ms = 100;
const buffered_lines_max = 500;

export function logTo({ write, worker, clock, settings, probes, hidden = () => [] }: LogOptions): Log {
  let lines: string[] = [];
  let cancel: (() => void) | null = null;
  const flood = floodGate(clock, (event, left_out) => line({ ...head("warn"), event, left_out }));

  function flush() {
    cancel?.();
    cancel = null;
    if (lines.length === 0) return;
    const text = lines.join("");
    lines = [];
    write(text);
  }

  const isWanted = (of: LogLevel) => logLevels.indexOf(of) >= logLevels.indexOf(settings().level);

  const head = (level: LogLevel): Head => {
    const time = new Date().toISOString();
    return worker === undefined ? { time, level } : { time, level, worker };
  };

  // Adds a line. Lines are written together after a tenth of a second: a system call for each is a tenth of a small
  // request's cost.
  function line(fields: Head & Record<string, unknown>) {
    keep(lineOf(settings().format, fields));
  }

  function keep(written: string) {
    lines.push(written);
    if (lines.length >= buffered_lines_max) flush();
    else cancel ??= clock.after(flush_ms, flush);
  }

  return {
    request(call, status) {
      const ended = call.endStatus(status);
      const of = probes?.has(call.route) && status !== 500 ? "debug" : ended >= 500 ? "error" : "info";
      if (isWanted(of)) line(requestFields(head(of), call, status, hidden, settings().engine_text === true));
    },
    event(of, event, fields = {}) {
      if (!isWanted(of) || !flood.admits(event)) return;
      const { cause } = fields;
      const safe = typeof cause === "string" ? { ...fields, cause: withoutEngines(cause, hidden()) } : fields;
      keep(masked(lineOf(settings().format, { ...head(of), event, ...safe })));
    },
    flush() {
      flood.flush();
      flush();
    },
  };
}

interface Head {
  time: string;
  level: LogLevel;
  worker?: number | undefined;
}

/**
 * The fields of a request's line, all named in one literal: an object that is composed of others costs more than
 * writing its line.
 */
function requestFields(
  { time, level, worker }: Head,
  call: Call,
  status: number,
  hidden: () => readonly string[],
  hasEngineText: boolean,
) {
  const { notes } = call;
  const { user_agent, x_request_id, x_client_request_id } = callersWords(call.request.headers);
  return {
    time,
    level,
    worker,
    event: "request",
    request_id: call.requestId,
    method: call.request.method,
    route: call.route,
    status: call.left ? 499 : status,
    client: call.client || undefined,
    user_agent,
    x_request_id,
    x_client_request_id,
    ms: Math.round(call.elapsed_ms() * 10) / 10,
    organization: notes.organization,
    key: notes.key,
    operator: notes.operator,
    person: notes.person,
    model: notes.model,
    stream: notes.stream,
    outcome: notes.outcome,
    first_part_ms: notes.firstPart_ms,
    queued_ms: notes.queued_ms ? Math.round(notes.queued_ms) : undefined,
    upstream: notes.upstream,
    replica: notes.replica,
    attempts: attemptsShown(notes.attempts ?? [], hasEngineText),
    input_tokens: notes.usage && promptTokens(notes.usage),
    output_tokens: notes.usage?.outputTokens,
    usage_source: notes.usage?.source,
    code: notes.code,
    cause: notes.cause === undefined ? undefined : withoutEngines(causeOf(notes.cause), hidden()),
  };
}

/** The attempts that the log shows. If the first one answered, the name of its engine is enough. */
function attemptsShown(attempts: readonly Tried[], hasEngineText: boolean): readonly Tried[] | undefined {
  if (attempts.length < 2 && attempts.every(({ outcome }) => outcome === "answered")) return undefined;
  return hasEngineText ? attempts : attempts.map(({ said: _, ...attempt }) => attempt);
}

const cause_chars_max = 2000;

/** The cause of a fault, for operators: the stack of a defect, the message of an outage. */
function causeOf(cause: unknown): string {
  if (cause instanceof Fault) return causeOf(cause.details.cause ?? cause.message);
  const text = cause instanceof Error ? withReason(cause) : String(cause);
  return masked(text.slice(0, 2 * cause_chars_max)).slice(0, cause_chars_max);
}

/** The stack, with the message of the error's cause in its first line, because a stack leaves the cause out. */
function withReason({ stack, message, cause }: Error): string {
  const text = stack ?? message;
  return cause instanceof Error ? text.replace(message, () => `${message} (because: ${cause.message})`) : text;
}

/** Hides engines: the runtime's error of a failed connection may contain their host. */
function withoutEngines(text: string, hidden: readonly string[]): string {
  return hidden.reduce((shown, word) => shown.replaceAll(word, "<engine>"), text);
}
