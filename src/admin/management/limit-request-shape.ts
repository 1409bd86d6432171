/** A limit request (a request for a higher limit) as verbs of management return it, and in words. */
import Type from "typebox";
import type { Currency } from "../../core/inference/money.ts";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import { snakeName, type Value } from "../../core/schema/codec.ts";
import { instant as instantWritten } from "../../core/time/written.ts";
import { limitRequestStates, type StoredLimitRequest } from "../store/limit-requests.ts";
import { id, instant, type LimitName, limitNames } from "../store/shapes.ts";
import type { Column, Facts } from "./command.ts";
import { amountOut, limitAmountWritten, oneAmount } from "./limit-shape.ts";

export const LimitRequest = Type.Object(
  {
    id: id("lreq"),
    organization_id: id("org"),
    organization: Type.String({ description: "The organization's slug." }),
    person_id: id("per"),
    person: nullable(Type.String({ description: "Name, else e-mail address, of who asks. Null: erased." })),
    subject: oneOf(["organization", "team", "person", "key"], { description: "Whose limit it is." }),
    subject_id: Type.String({ description: "Its ID." }),
    name: nullable(Type.String({ description: "Its name." })),
    models: nullable(Type.String({ description: "The models that the limit is for. Null: all." })),
    limit: oneOf([...limitNames]),
    value: oneAmount("How much it was when somebody asked: money of a window, else a whole number."),
    asked: nullable(oneAmount("How much is asked for. Null: the decision says how much.")),
    message: Type.String(),
    request_id: nullable(id("req")),
    created_at: instant("When somebody asked."),
    expires_at: instant("From then on it can be decided no more."),
    state: oneOf([...limitRequestStates]),
    decided_at: nullable(instant("When it was approved, declined or withdrawn.")),
    decided_by: nullable(Type.String({ description: "The actor." })),
    granted: nullable(oneAmount("How much an approval put in force.")),
    until: nullable(instant("When the temporary increase of an approval ends.")),
    reason: nullable(Type.String({ description: "Why it was declined." })),
  },
  { $id: "LimitRequest", description: "Somebody who met a limit asks for more." },
);
export type LimitRequest = Value<typeof LimitRequest>;

export function limitRequestShown(stored: StoredLimitRequest, currency: Currency): LimitRequest {
  const { limit, models, value, asked, granted } = stored;
  const written = (amount: number | null) => amount && amountOut(limit, amount, currency);
  return {
    ...stored,
    models: models || null,
    limit: snakeName(limit) as LimitName,
    value: amountOut(limit, value, currency),
    asked: written(asked),
    granted: written(granted),
  };
}

/** The limit that is asked for, in words: `month of team research, for openai/*` */
export function askedLimitWords({ subject, name, subjectId, models, limit }: LimitRequest): string {
  const whose = `${subject} ${name ?? subjectId}`;
  return `${limit.replaceAll("_", " ")} of the ${whose}${models === null ? "" : `, for ${models}`}`;
}

export function limitRequestFacts(request: LimitRequest): Facts {
  const { asked, granted, until, reason, decidedAt, decidedBy } = request;
  return [
    ["id", request.id],
    ["organization", request.organization],
    ["asks", [request.person, `(${request.personId})`].filter(Boolean).join(" ")],
    ["limit", `${askedLimitWords(request)}: ${limitAmountWritten(request.value)}`],
    ["its ID", request.subjectId],
    ["asks for", asked === null ? "more" : limitAmountWritten(asked)],
    ["message", request.message],
    ["request", request.requestId],
    ["asked", instantWritten(request.createdAt)],
    ["state", request.state],
    ["expires", instantWritten(request.expiresAt)],
    ["granted", granted === null ? null : `${limitAmountWritten(granted)} until ${instantWritten(until)}`],
    ["reason", reason],
    ["decided", decidedAt && `${instantWritten(decidedAt)} by ${decidedBy}`],
  ];
}

export const limitRequestColumns: Column<LimitRequest>[] = [
  { head: "ID", cell: (one) => one.id },
  { head: "ORG", cell: ({ organization }) => organization },
  { head: "WHO", cell: ({ person, personId }) => person ?? personId, breaks: true },
  { head: "LIMIT", cell: askedLimitWords, breaks: true },
  { head: "WAS", cell: ({ value }) => limitAmountWritten(value) },
  { head: "ASKS FOR", cell: ({ asked }) => (asked === null ? "more" : limitAmountWritten(asked)) },
  { head: "STATE", cell: ({ state }) => state },
  { head: "MESSAGE", cell: ({ message }) => message, breaks: true, optional: true },
];
