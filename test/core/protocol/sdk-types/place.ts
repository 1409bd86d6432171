/**
 * How each type that the SDKs know is treated, by the place where it occurs: the tables of messages.ts, chat.ts and
 * responses.ts.
 */
import type { ClientName, EngineName } from "../pairs/wires.ts";

/** A protocol whose SDKs are looked through; clients and engines speak it. */
export type SdkName = Extract<ClientName, EngineName>;

/** The words of docs/protocols.md: a type that is left out does no harm, and has no effect. */
export type Verdict = "carried" | "left out" | "refused";

export type RequestRow =
  | { verdict: "carried"; body: object; seen: RegExp }
  /** The engine gets the same request as for the body `plain`. */
  | { verdict: "left out"; body: object; plain: object }
  | { verdict: "refused" };

/** A place in clients' requests where a type can occur. */
export interface RequestPlace {
  kind: "request";
  client: SdkName;
  /** The members of the SDK's unions at this place. */
  known: readonly string[];
  /** Bodies that have only that type at this place, and the path that the refusal names. */
  refusals(type: string): { body: object; param: string }[];
  rows: Record<string, RequestRow>;
}

export type AnswerRow = { verdict: "carried"; reply: object; seen: RegExp } | { verdict: "left out" };

/** A place in what an engine answers to a client of its own protocol. */
export interface AnswerPlace {
  kind: "answer";
  client: SdkName;
  known: readonly string[];
  /** An answer with that type at this place, and the text `TEXT` beside it. */
  reply(type: string): object;
  rows: Record<string, AnswerRow>;
}

/** The events of a stream, as clients get them. */
export interface EventPlace {
  kind: "events";
  client: SdkName;
  known: readonly string[];
  rows: Record<string, { verdict: "carried" | "left out" }>;
}

export type Place = RequestPlace | AnswerPlace | EventPlace;

export const carried = (body: object, seen: RegExp): RequestRow => ({ verdict: "carried", body, seen });
export const leftOut = (body: object, plain: object): RequestRow => ({ verdict: "left out", body, plain });
export const refused: RequestRow = { verdict: "refused" };
export const answered = (reply: object, seen: RegExp): AnswerRow => ({ verdict: "carried", reply, seen });
export const passedOver = { verdict: "left out" } as const;

/**
 * Makes the places in the tables of a client. A place in requests without `refusals` carries or leaves out each type.
 */
export const placesOf = (client: SdkName) => ({
  request(
    known: readonly string[],
    rows: RequestPlace["rows"],
    refusals: RequestPlace["refusals"] = () => [],
  ): RequestPlace {
    return { kind: "request", client, known, rows, refusals };
  },
  answer(known: readonly string[], rows: AnswerPlace["rows"], reply: AnswerPlace["reply"]): AnswerPlace {
    return { kind: "answer", client, known, rows, reply };
  },
  events(known: readonly string[], rows: EventPlace["rows"]): EventPlace {
    return { kind: "events", client, known, rows };
  },
});

/** The types of a family: each is `beginning`, followed by one of the ends. */
export const under = (beginning: string, ...ends: string[]) => ends.map((end) => beginning + end);

/** The same row for each of several types. */
export function each<Row>(types: readonly string[], row: (type: string) => Row): Record<string, Row> {
  return Object.fromEntries(types.map((type) => [type, row(type)]));
}

export function union(...lists: readonly string[][]): string[] {
  return [...new Set(lists.flat())].sort();
}
