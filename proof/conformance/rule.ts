/**
 * The interface of a case, which is one request with the rules that its response must follow. Rules are pure, so that a
 * recorded response can be checked later.
 */
import { type Exchange, parsed, type TestRequest } from "./exchange.ts";

export type Protocol = "chat completions" | "Messages" | "Responses";

export interface Rule {
  id: string;
  /** The rule as a sentence. */
  says: string;
  /** Returns the mistake in the response, as text. Null: the response follows the rule. */
  broken(exchange: Exchange): string | null;
}

export interface Case {
  name: string;
  request: TestRequest;
  /** The correct statuses. */
  status: readonly number[];
  rules: readonly Rule[];
  /**
   * The capability that the case tests, which not every model has: if the request is refused, the model lacks it, and
   * no rule is broken.
   */
  needs?: string;
}

export interface Suite {
  protocol: Protocol;
  /** The document from which the rules are taken. */
  source: string;
  /** The cases of the suite. The first one shows whether the server supports the protocol at all. */
  cases: readonly Case[];
}

export function rule(id: string, says: string, broken: Rule["broken"]): Rule {
  return { id, says, broken };
}

/** The value at a path of names and indexes, such as `choices.0.message`; undefined if there is none. */
export function at(value: unknown, path: string): unknown {
  let found = value;
  for (const name of path.split(".")) {
    if (typeof found !== "object" || found === null) return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return found;
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A short text that represents a value. */
export function excerpt(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

/** Creates a rule that the value at a path of the response is one of `values`. */
export function oneOf(path: string, values: readonly unknown[]): Rule {
  const allowed = values.map((value) => JSON.stringify(value)).join(" or ");
  return rule(path, `\`${path}\` is ${allowed}`, ({ json }) => {
    const found = at(json, path);
    return values.includes(found) ? null : `\`${path}\` is ${excerpt(found)}`;
  });
}

type Kind = "text" | "whole number" | "list" | "object";

export const kinds: Record<Kind, (value: unknown) => boolean> = {
  text: (value) => typeof value === "string" && value !== "",
  "whole number": (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  list: Array.isArray,
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
};

/** Creates a rule that the value at a path of the response is of this kind. */
export function isA(kind: Kind, path: string): Rule {
  const says = kind === "text" ? `\`${path}\` is a text that isn't empty` : `\`${path}\` is a ${kind}`;
  return rule(path, says, ({ json }) => {
    const found = at(json, path);
    return kinds[kind](found) ? null : `\`${path}\` is ${excerpt(found)}`;
  });
}

/**
 * Creates a rule that the response is an event stream, and that each of its messages is JSON, except those in
 * `exceptions`.
 */
export function streams(exceptions: readonly string[] = []): Rule {
  return rule("event stream", "the answer is an event stream, each message of which is JSON", (exchange) => {
    const type = exchange.headers["content-type"] ?? "";
    if (!type.startsWith("text/event-stream")) return `content-type is ${excerpt(type)}`;
    if (exchange.messages.length === 0) return "there is no message";
    const wrong = exchange.messages.find(({ data }) => !exceptions.includes(data) && parsed(data) === undefined);
    return wrong ? `a message is ${excerpt(wrong.data)}` : null;
  });
}
