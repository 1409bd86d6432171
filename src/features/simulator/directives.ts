/**
 * Directives make the simulator answer in a certain way. A request gives them as `[simulator: status=503
 * retry-after=7]` in the text of its last user message (so that they pass through a gateway) or in the header
 * `x-simulator`; the simulator's options can give directives for all requests. A test compares docs/simulator.md with
 * the tables of this file.
 */
import { SimulatorRefusal } from "./refusal.ts";

interface DirectiveRule {
  /** An example of the directive, with a value. */
  form: string;
  means: string;
  value: "none" | "word" | "whole" | "number" | "optional-whole";
  min: number | undefined;
  max: number | undefined;
}

function rule(value: DirectiveRule["value"], form: string, means: string, min?: number, max?: number): DirectiveRule {
  return { form, means, value, min, max };
}

const rules = {
  status: rule("whole", "status=503", "answers with this status and an error", 400, 599),
  "retry-after": rule("whole", "retry-after=7", "`retry-after` in seconds, on an error of any kind"),
  "context-length": rule("none", "context-length", "400 `context_length_exceeded`, worded as engines do"),
  "html-error": rule(
    "optional-whole",
    "html-error or html-error=504",
    "an HTML page, as from a proxy; 502 by default",
    400,
    599,
  ),
  "wrong-content-type": rule("none", "wrong-content-type", "the right body as `text/plain`"),
  "slow-headers": rule("whole", "slow-headers=2000", "milliseconds before the status line", 0, 3_600_000),
  ttft: rule("number", "ttft=300", "milliseconds from the request to the first token", 0, 3_600_000),
  tps: rule("number", "tps=20", "tokens a second; 0 is as fast as possible", 0, 1_000_000),
  tokens: rule("whole", "tokens=500", "exactly this many tokens of text", 0, 200_000),
  reasoning: rule("whole", "reasoning=40", "exactly this many tokens of reasoning, asked for or not", 0, 200_000),
  cached: rule("whole", "cached=100", "reports this many prompt tokens as cached, at most all"),
  "per-chunk": rule("whole", "per-chunk=4", "this many tokens in each chunk", 1, 1000),
  echo: rule("none", "echo", "answers with the last user text, without its directives; `tokens` cuts or continues it"),
  call: rule(
    "word",
    "call=NAME or call=NAME:BASE64",
    "calls this tool; BASE64 is its arguments as JSON. Repeat it for parallel calls",
  ),
  calls: rule("whole", "calls=2", "this many parallel calls, of one tool after the other", 1, 128),
  "text-with-calls": rule("none", "text-with-calls", "says something before it calls tools"),
  refusal: rule("none", "refusal", "refuses in the field `refusal`"),
  finish: rule("word", "finish=content_filter", "ends with this `finish_reason`"),
  stall: rule("none", "stall", "sends the response head and then nothing, and keeps the connection open"),
  "stall-after": rule("whole", "stall-after=5", "the same after this many tokens"),
  "cut-after": rule("whole", "cut-after=5", "breaks the connection after this many tokens"),
  "malformed-after": rule("whole", "malformed-after=3", "an event that is not JSON, after this many tokens"),
  "error-after": rule("whole", "error-after=3", "an error object in the stream, which then ends; 500 if not streamed"),
  "no-finish": rule("none", "no-finish", "no `finish_reason`"),
  "no-done": rule("none", "no-done", "no `[DONE]`"),
  "no-usage": rule("none", "no-usage", "no usage, asked for or not"),
  quirk: rule("word", "quirk=NAME", "one of the quirks below; can be repeated"),
};

const quirkRules = {
  "empty-choices-first": "a first chunk with `choices: []`",
  empties: "each chunk repeats `role`, and has `content: null` and `tool_calls: []` if it has none",
  comments: "a comment frame before each event",
  crlf: "lines end with CR LF",
  "no-space": "`data:` without the space",
  bom: "a byte order mark at the start of the stream",
  "split-utf8": "writes end in the middle of multi-byte characters",
  "text-with-finish": "the last token and `finish_reason` in one chunk",
  "usage-on-finish": "usage on the chunk that has the `finish_reason`",
  "usage-after": "usage after the finish, in one more chunk that repeats the choice",
  "whole-tool-call": "a tool call in one chunk",
  "two-calls-one-chunk": "two whole tool calls in one chunk",
  "interleaved-tools": "fragments of two tool calls, alternating",
  "repeated-ids": "`id`, `type` and `name` in each fragment of a call",
  "same-ids": "two tool calls with one id",
  "ids-missing": "tool calls without `id`",
  "index-always-0": "`index` 0 for each tool call",
  "index-missing": "tool calls without `index`",
  "stop-with-tools": "`finish_reason` is `stop` although tools are called",
  "cut-arguments": "the last call's arguments are cut in the middle, with `length`",
  "text-after-tools": "text after the tool calls",
  "reasoning-field": "the field is named `reasoning`",
  "reasoning-after-text": "reasoning after the text",
  "integer-code": "errors have their status as a number in `code`",
  "detail-error": 'errors are `{"detail": …}`',
  "object-error": 'errors are `{"object": "error", "message": …}`',
} satisfies Record<string, string>;

type Directive = keyof typeof rules;
export type Quirk = keyof typeof quirkRules;

/** The directives and quirks, with their meanings, for docs/simulator.md. */
export const documentation = {
  directives: Object.values(rules).map((rule) => ({ form: rule.form, means: rule.means })),
  quirks: Object.entries(quirkRules).map(([form, means]) => ({ form: `quirk=${form}`, means })),
};

interface DirectedCall {
  name: string;
  /** JSON text; null: the simulator generates the arguments. */
  arguments: string | null;
}

export interface Directives {
  flags: ReadonlySet<Directive>;
  numbers: { [name in Directive]?: number };
  calls: DirectedCall[];
  finish: string | null;
  quirks: ReadonlySet<Quirk>;
}

/**
 * Reads directives; later directives override earlier ones. Throws, for an unknown one, a SimulatorRefusal (400) that
 * lists the known directives.
 */
export function parseDirectives(...sources: string[]): Directives {
  const flags = new Set<Directive>();
  const quirks = new Set<Quirk>();
  const directives: Directives = { flags, numbers: {}, calls: [], finish: null, quirks };
  for (const word of sources.flatMap((source) => source.split(/[\s,]+/))) {
    if (word === "") continue;
    const equals = word.indexOf("=");
    const name = equals < 0 ? word : word.slice(0, equals);
    const value = equals < 0 ? null : word.slice(equals + 1);
    if (!isDirective(name)) throw unknown("directive", name, Object.keys(rules));
    flags.add(name);
    const rule: DirectiveRule = rules[name];
    if (rule.value === "none" ? value !== null : value === null && rule.value !== "optional-whole") throw misused(rule);
    if (value === null) continue;
    if (rule.value !== "word") directives.numbers[name] = numberOf(value, rule);
    else if (value === "") throw misused(rule);
    else if (name === "call") directives.calls.push(callOf(value));
    else if (name === "finish") directives.finish = value;
    else if (isQuirk(value)) quirks.add(value);
    else throw unknown("quirk", value, Object.keys(quirkRules));
  }
  return directives;
}

// No bracket is allowed inside a directive, so that matching takes linear time even with unclosed brackets.
const brackets = /\[simulator:([^[\]]*)\]/gi;

export function separated(text: string): { directives: string; rest: string } {
  const found: string[] = [];
  const rest = text.replace(brackets, (_, inside: string) => {
    found.push(inside);
    return "";
  });
  return { directives: found.join(" "), rest: rest.trim() };
}

function callOf(value: string): DirectedCall {
  const [name = "", encoded, ...more] = value.split(":");
  if (encoded === undefined && name !== "") return { name, arguments: null };
  const json = new TextDecoder().decode(Uint8Array.from(decoded(encoded ?? ""), (letter) => letter.charCodeAt(0)));
  if (name === "" || more.length > 0 || !isJson(json)) throw misused(rules.call);
  return { name, arguments: json };
}

function decoded(base64: string): string {
  try {
    return atob(base64);
  } catch {
    throw misused(rules.call);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function isDirective(name: string): name is Directive {
  return Object.hasOwn(rules, name);
}

function isQuirk(name: string): name is Quirk {
  return Object.hasOwn(quirkRules, name);
}

function numberOf(value: string, rule: DirectiveRule): number {
  const number = /^\d{1,12}(\.\d{1,6})?$/.test(value) ? Number(value) : Number.NaN;
  const fits = number >= (rule.min ?? 0) && number <= (rule.max ?? Number.MAX_SAFE_INTEGER);
  if (!fits || (rule.value !== "number" && !Number.isInteger(number))) throw misused(rule);
  return number;
}

function misused(rule: DirectiveRule): SimulatorRefusal {
  const range = rule.max === undefined ? "" : `, with a value from ${rule.min ?? 0} to ${rule.max}`;
  return new SimulatorRefusal(
    400,
    `Simulator: this directive is written ${rule.form}${range}: ${rule.means}.`,
    "invalid_directive",
  );
}

function unknown(what: string, name: string, names: string[]): SimulatorRefusal {
  const message = `Simulator: there is no ${what} “${name.slice(0, 80)}”. Known are: ${names.join(", ")}.`;
  return new SimulatorRefusal(400, message, `unknown_${what}`);
}
