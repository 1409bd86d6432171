/**
 * CALENDARS: an organization's weeks and months may begin by the local time of a time zone. Only the store computes the
 * instants at which they begin (docs/design/usage.md, Calendars).
 */
import Type from "typebox";
import { oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";

export const weekDays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] as const;

export const Calendar = Type.Object({
  zone: Type.String({ description: "A name of the IANA time zone database, such as Europe/Berlin." }),
  week_starts: oneOf([...weekDays], { description: "The day on which a week begins, at the start of the day." }),
  month_starts: Type.Integer({
    minimum: 1,
    maximum: 31,
    description: "The day on which a month begins; in a shorter month, its last day.",
  }),
});
export type Calendar = Value<typeof Calendar>;
