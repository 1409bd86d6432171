/** Explains violations: the path as clients write it, what is wrong, and what to do. No message repeats a secret. */
import { Fault } from "../inference/fault.ts";

export interface Violation {
  code: "missing_field" | "invalid_value" | "unknown_field" | "mutually_exclusive" | "unsupported_feature";
  /** The path of the field: `messages[3].role`. Empty for the body itself. */
  param: string;
  message: string;
}

export function violationFault(violation: Violation): Fault {
  return new Fault(violation.code, violation.message, violation.param ? { param: violation.param } : {});
}

/** The violation of a wrong value: `words` complete "'messages[3].role' …". */
export function invalid(param: string, words: string): Violation {
  return { code: "invalid_value", param, message: `'${param}' ${words}` };
}

/** The violation of a required field that is absent: `words` follow "'messages[3].role' is missing." */
export function missing(param: string, words: string): Violation {
  return { code: "missing_field", param, message: `'${param}' is missing. ${words}` };
}

/** The violation of a tool's result without its call, by the protocol's words for the call and for what has it. */
export function unanswering(param: string, callId: string, call: string, holder: string): Violation {
  return invalid(param, `must be the id of ${call}, but is ${describe(callId)}. Send ${holder} too.`);
}

const listed_max = 16;

/** The violation of a tool choice that names a tool, `name`, which is not among the request's tools, `names`. */
export function unlistedTool(param: string, name: string, names: readonly string[]): Violation {
  const listed = names.filter((one) => !looksSecret(one)).slice(0, listed_max);
  const others = names.length > listed.length ? " and others" : "";
  const among = listed.length > 0 ? ` (${oneOfWords(listed)}${others})` : "";
  return invalid(param, `must name one of 'tools'${among}, but is ${describe(name)}.`);
}

/** The violation of a tool choice that forces a call when the request has no tool. */
export const choiceWithoutTools = invalid(
  "tool_choice",
  "requires callable 'tools'. Add tools, or remove 'tool_choice'.",
);

/**
 * The violation of a feature that this service supports with no engine. Features that only some engines lack are in
 * engine-options.ts.
 */
export function notSupported(param: string, feature: string): Violation {
  const message = `This service does not support ${feature}, which '${param}' asks for. Remove the field, or change its value.`;
  return { code: "unsupported_feature", param, message };
}

/**
 * A feature with the protocol's word for it, so that clients know what to leave out: "web search ('web_search_call')".
 */
export function featureNamed(feature: string, type: string): string {
  return feature.split(/\W+/).includes(type) ? feature : `${feature} ('${type}')`;
}

const excerpt_chars_max = 48;

/** A path as text: `messages[3].content[0].type`. A name that is no identifier is quoted: `metadata["a b"]`. */
export function paramOf(path: readonly (string | number)[]): string {
  let param = "";
  for (const step of path) {
    if (typeof step === "number") param += `[${step}]`;
    else if (looksSecret(step)) param += `[a name of ${step.length} characters]`;
    else if (!/^[A-Za-z_$][\w$-]*$/.test(step) || step.length > excerpt_chars_max) param += `[${quoted(step, '"')}]`;
    else param += param ? `.${step}` : step;
  }
  return param;
}

/** Describes a value in an error message: short, on one line, with its type, and never with something like a key. */
export function describe(value: unknown): string {
  if (typeof value === "string")
    return looksSecret(value) ? `a string of ${value.length} characters` : `the string ${quoted(value, "'")}`;
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : `an array of ${items(value.length)}`;
  if (typeof value === "object" && value !== null)
    return Object.keys(value).length === 0 ? "an empty object" : "an object";
  return String(value);
}

function quoted(text: string, quote: string): string {
  const short = text.length > excerpt_chars_max ? `${text.slice(0, excerpt_chars_max)}…` : text;
  // JSON escapes keep line breaks and control characters out of messages and logs.
  const escaped = JSON.stringify(short.toWellFormed()).slice(1, -1).replaceAll('\\"', '"');
  return quote + escaped + quote;
}

/**
 * Whether a text looks like a credential: it has a known prefix, or is a long word that mixes cases and digits or is
 * hexadecimal.
 */
export function looksSecret(text: string): boolean {
  // Only the beginning is shown, and a string may have megabytes.
  const head = text.slice(0, 256);
  if (/(^|[^a-z])(sl[kort]_|sk[-_]|pk[-_]|gh[pousr]_|xox[abp]-|eyJ|AKIA|bearer\s|basic\s)/i.test(head)) return true;
  for (const run of head.match(/[A-Za-z0-9_+/=-]{20,}/g) ?? []) {
    if (/[a-z]/.test(run) && /[A-Z]/.test(run) && /[0-9]/.test(run)) return true;
    if (/[0-9a-f]{32}/i.test(run)) return true;
  }
  return false;
}

export function items(count: number): string {
  return count === 1 ? "1 item" : `${count} items`;
}

/** Joins values in quotes: `'a', 'b' or 'c'`. */
export function oneOfWords(values: readonly unknown[]): string {
  const words = values.map((value) => (typeof value === "string" ? `'${value}'` : String(value)));
  return joinedByOr(words);
}

export function joinedByOr(words: readonly string[]): string {
  const distinct = [...new Set(words)];
  return distinct.length < 2 ? distinct.join("") : `${distinct.slice(0, -1).join(", ")} or ${distinct.at(-1)}`;
}
