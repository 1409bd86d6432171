/**
 * A VERB (operation) of management, as one value: its name and path, the roles that may use it, its input and answer,
 * its errors, and its function. The routes, the clients, the socket, the contract and the command line derive from the
 * list of these values (verbs.ts). docs/contributing-recipes.md, Add a verb, has the steps.
 */
import type { Static, TObject, TProperties, TSchema } from "typebox";
import Type from "typebox";
import type { FaultCode } from "../../core/inference/fault.ts";
import { type Contract, contract } from "../../core/protocol/contract.ts";
import { decode, encode, type Given, type Value } from "../../core/schema/codec.ts";
import { nanos_max } from "../../core/store/ledger.ts";
import type { CallerRole } from "./caller.ts";
import type { Command, Confirmation, FlagQuestion } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { ManagementError } from "./error.ts";
import type { KeyAct } from "./key-kinds.ts";

/**
 * `creation`: an idempotency key makes a repeat harmless. `change`: takes the version that was read, and is refused if
 * the thing's version has changed since.
 */
export type Kind = "reading" | "creation" | "change" | "act";
type Method = "GET" | "POST" | "PUT" | "PATCH";

export type Tag =
  | "Organizations"
  | "Keys"
  | "Teams"
  | "Limits"
  | "Plans"
  | "Models"
  | "Upstreams"
  | "Fleet"
  | "Usage"
  | "Requests"
  | "Audit"
  | "Operators"
  | "People"
  | "Notices"
  | "Search"
  | "Console";

const versionRead = {
  version: Type.Optional(Type.Integer({ minimum: 1, maximum: nanos_max, description: "The version that was read." })),
};
/** The input of the verb: its own members and, for a change, the version that the caller read. */
type Input<How extends Kind, Takes extends TProperties> = TObject<
  How extends "change" ? Takes & typeof versionRead : Takes
>;

export interface Declared<Name extends string, How extends Kind, Takes extends TProperties, Answers extends TSchema> {
  /** The name of the verb, and the operation's id in the contract. */
  name: Name;
  /**
   * The method, and the path below `/management/v1` with members of `takes` in braces: `PATCH /teams/{team}`. A `GET`
   * only reads.
   */
  route: `${Method} /${string}`;
  summary: string;
  description: string;
  /** Who may use the verb. An `organization-admin` sees only their own organization, a `member` only their own data. */
  roles: readonly [CallerRole, ...CallerRole[]];
  /** The kind of the verb's effect; absent: it only reads. */
  kind?: How;
  /**
   * The act on the key that `id` names, which the key's kind may refuse (key-kinds.ts). Absent: the input names no key.
   */
  onKey?: KeyAct;
  /** The error codes of the verb itself, in addition to those of the gate before all verbs (src/admin/http/gate.ts). */
  faults: readonly FaultCode[];
  /**
   * The schema of the input: a `GET` takes it from the query, other methods from the body. A body that may not be empty
   * has the options `someChange`.
   */
  takes: TObject<Takes>;
  answers: Answers;
  example: { takes: Static<TObject<Takes>>; answer: Value<Answers> };
  /**
   * The verb's command on the command line; absent if the command is hand-written code, or if the verb has no command.
   */
  command?: Command<Given<Input<How, Takes>>, Value<Answers>>;
  /** Forms of the answer other than JSON, by the value of the parameter `format`. */
  formats?: Readonly<Record<string, Format<Answers>>>;
  /** The way in which `format=events` streams the answer; absent: the answer cannot be streamed. */
  live?: Live;
  act(context: ManagementContext, input: Value<Input<How, Takes>>): Promise<Value<Answers>>;
}

/**
 * An answer that is sent as an event, first and after each change. Since the input of the verb is empty, the answer is
 * the same for all callers, and the node reads it once for all of them.
 */
export interface Live {
  /** The name of the events. */
  event: string;
  /**
   * The interval at which the answer is read and the caller's right to it is checked. It is less than a second, because
   * every change must be in force on all nodes within a second.
   */
  every_ms: number;
}

export interface Format<Answers extends TSchema> {
  description: string;
  /** The media type of the format. */
  type: string;
  /** The name under which a browser saves the answer. */
  filename: string;
  /** Replaces the verb's input by the input that this format needs. */
  asks?(taken: Record<string, unknown>): Record<string, unknown>;
  /** Writes the answer in this format, line by line. */
  write(answer: Value<Answers>): Iterable<string>;
}

export interface Verb<
  Name extends string = string,
  How extends Kind = Kind,
  Takes extends TProperties = TProperties,
  Answers extends TSchema = TSchema,
> extends Declared<Name, How, Takes, Answers> {
  method: Lowercase<Method>;
  /**
   * The path as the contract has it: `/teams/{id}`. A second variable in the path has the name of a member of `takes`.
   */
  path: string;
  /** The member of `takes` whose value replaces `{id}`; null: the path has no variable. */
  id: string | null;
  /** The member of `takes` whose value replaces the path's second variable; null: the path has no second one. */
  secondId: string | null;
  kind: How;
  tag: Tag;
  input: Input<How, Takes>;
  /** Decodes the JSON of an input. Throws a ManagementError that names the first invalid member. */
  take(json: unknown): Value<Input<How, Takes>>;
}

/** The types of the input and the answer of a verb, for its clients. */
export type GivenTo<V> = V extends Verb<string, infer How, infer Takes, TSchema> ? Given<Input<How, Takes>> : never;
export type AnswerOf<V> = V extends Verb<string, Kind, infer _, infer Answers> ? Value<Answers> : never;

/** The question that a command asks before it acts. `of`: the verb that reads the data for the question. */
export function confirmation<V>(
  of: V & { name: string },
  asks: Omit<Confirmation, "of" | "question"> & {
    question(found: AnswerOf<V>, given: Record<string, unknown>): string;
  },
): Confirmation {
  return { ...asks, of, question: (found, given) => asks.question(found as AnswerOf<V>, given) };
}

/** A question whose answer the user chooses from a list. */
export function choiceOf<V>(
  list: V & { name: string },
  { message, option, none }: { message: string; option(item: ItemOf<V>): Choice | null; none: string },
): FlagQuestion {
  return { message, from: { list, option: (item) => option(item as ItemOf<V>), none } };
}
type Choice = { value: string; label: string };
type ItemOf<V> = AnswerOf<V> extends { data: (infer Item)[] } ? Item : never;

/** Returns the function that makes the verbs of one section of the contract. */
export function verbsOf(tag: Tag) {
  return function verb<
    const Name extends string,
    Takes extends TProperties,
    Answers extends TSchema,
    const How extends Kind = "reading",
  >(declared: Declared<Name, How, Takes, Answers>): Verb<Name, How, Takes, Answers> {
    const { route, takes, onKey, kind = "reading" as How } = declared;
    const [method = "", path = ""] = route.split(" ");
    const [id = null, secondId = null] = [...path.matchAll(/\{(\w+)\}/g)].map(([, member]) => member!);
    const version = kind === "change" ? versionRead : {};
    const input = Type.Object({ ...takes.properties, ...version }) as unknown as Input<How, Takes>;
    // The check of inputs is compiled at the verb's first use, because most processes use few of the verbs.
    let compiled: Contract<unknown> | null = null;
    return {
      ...declared,
      tag,
      kind,
      method: method.toLowerCase() as Lowercase<Method>,
      path: path.replace(/\{\w+\}/, "{id}"),
      id,
      secondId,
      input,
      async act(context, given) {
        if (onKey) await context.keyFor((given as { id: string }).id, onKey);
        return declared.act(context, given);
      },
      take(json) {
        compiled ??= contract(input as TSchema, { topLevel: "closed" });
        const trimmed = withoutMargins(json);
        if (!compiled.satisfied(trimmed)) {
          const { code, message, param } = compiled.violation(trimmed);
          throw new ManagementError(message, code, param ? { param } : {});
        }
        return naming(input, trimmed, () => decode(input, trimmed));
      },
    };
  };
}

/** Decodes, and adds to a codec's error the path of the member that caused it. */
function naming<Decoded>(schema: TSchema, json: unknown, decoding: () => Decoded): Decoded {
  try {
    return decoding();
  } catch (thrown) {
    if (!(thrown instanceof ManagementError)) throw thrown;
    throw new ManagementError(thrown.message, thrown.code, { param: refusedIn(schema, json).join(".") });
  }
}

function refusedIn(schema: TSchema, json: unknown): string[] {
  const { anyOf = [schema] } = schema as { anyOf?: TSchema[] };
  const members = anyOf.flatMap((one) => Object.entries((one as Partial<TObject>).properties ?? {}));
  for (const [name, inner] of members) {
    const value = (json as Record<string, unknown> | null)?.[name];
    try {
      if (value !== undefined) decode(inner, value);
    } catch {
      return [name, ...refusedIn(inner, value)];
    }
  }
  return [];
}

export async function perform(one: Verb, context: ManagementContext, json: unknown): Promise<unknown> {
  return encode(one.answers, await one.act(context, one.take(json)));
}

/** The schema options of a body that has to contain at least one change. */
export const someChange = { minProperties: 1, "x-must-be": "an object with at least one change" };

/** Removes the spaces around each text of a request, since people paste texts. */
export function withoutMargins(json: unknown): unknown {
  if (typeof json === "string") return json.trim();
  if (Array.isArray(json)) return json.map(withoutMargins);
  if (typeof json !== "object" || json === null) return json;
  return Object.fromEntries(Object.entries(json).map(([name, inner]) => [name, withoutMargins(inner)]));
}
