/**
 * The treatment of each type that the SDKs know, by the place (a position in a request, answer or stream) where it
 * occurs: the types of the tables in messages.ts, chat.ts and responses.ts.
 */
import type { ClientName, EngineName } from "../pairs/wires.ts";

/** A protocol whose SDK types are examined; both clients and engines speak it. */
export type SdkName = Extract<ClientName, EngineName>;

/** The verdicts of docs/protocols.md: a type that is left out does no harm, and has no effect. */
export type Verdict = "carried" | "left out" | "refused";

/** The verdict on a type that is carried; a probe in ../losses tests it. */
export type Carried = { verdict: "carried" };
export type RequestRow =
  | Carried
  /** The engine gets the same request as for the body `plain`. */
  | { verdict: "left out"; body: object; plain: object }
  | { verdict: "refused" };

/** A position in clients' requests where a type can occur. */
export interface RequestPlace {
  kind: "request";
  client: SdkName;
  /** The positions at which the probes have the types that are carried, in the form of `typesIn`. */
  at: readonly string[];
  /** The members of the SDK's unions at this place. */
  known: readonly string[];
  /** Bodies that have only that type at this place, and the path that the refusal names. */
  refusals(type: string): { body: object; param: string }[];
  rows: Record<string, RequestRow>;
}

/** A position in an engine's answer to a client of its own protocol where a type can occur. */
export interface AnswerPlace {
  kind: "answer";
  client: SdkName;
  at: readonly string[];
  known: readonly string[];
  /** An answer with the type at this place, and the text `TEXT` next to it. */
  reply(type: string): object;
  rows: Record<string, { verdict: "carried" | "left out" }>;
}

/** The events of a stream, as clients get them, each of which has a type. */
export interface EventPlace {
  kind: "events";
  client: SdkName;
  known: readonly string[];
  rows: Record<string, { verdict: "carried" | "left out" }>;
}

export type Place = RequestPlace | AnswerPlace | EventPlace;

export const carried = (...types: string[]) => each(types, (): Carried => ({ verdict: "carried" }));
export const leftOut = (body: object, plain: object): RequestRow => ({ verdict: "left out", body, plain });
export const refused: RequestRow = { verdict: "refused" };
export const passedOver = { verdict: "left out" } as const;

/**
 * Makes the places for the tables of a client. At a place in requests without `refusals`, no type is refused; at a
 * place in answers without `reply`, each type is carried.
 */
export const placesOf = (client: SdkName) => ({
  request(
    at: readonly string[],
    known: readonly string[],
    rows: RequestPlace["rows"],
    refusals: RequestPlace["refusals"] = () => [],
  ): RequestPlace {
    return { kind: "request", client, at, known, rows, refusals };
  },
  answer(
    at: readonly string[],
    known: readonly string[],
    rows: AnswerPlace["rows"],
    reply: AnswerPlace["reply"] = () => ({}),
  ): AnswerPlace {
    return { kind: "answer", client, at, known, rows, reply };
  },
  events(known: readonly string[], rows: EventPlace["rows"]): EventPlace {
    return { kind: "events", client, known, rows };
  },
});

/**
 * The types in a body, each as the path of keys that leads to it, with the types (or else the roles) along the path:
 * `messages<user>.content<text>`.
 */
export function typesIn(value: unknown, path = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => typesIn(item, path));
  if (typeof value !== "object" || value === null) return [];
  const { type, role } = value as { type?: string; role?: string };
  const kind = type ?? role;
  const here = path === "" || kind === undefined ? path : `${path}<${kind}>`;
  const inner = Object.entries(value).flatMap(([key, one]) => typesIn(one, here === "" ? key : `${here}.${key}`));
  return [here, ...inner];
}

/** The types of a family: each is `beginning`, followed by one of the ends. */
export const under = (beginning: string, ...ends: string[]) => ends.map((end) => beginning + end);

/** The same row for each of several types. */
export function each<Row>(types: readonly string[], row: (type: string) => Row): Record<string, Row> {
  return Object.fromEntries(types.map((type) => [type, row(type)]));
}

export function union(...lists: readonly string[][]): string[] {
  return [...new Set(lists.flat())].sort();
}
