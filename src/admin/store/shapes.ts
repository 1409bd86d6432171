/**
 * The schemas of fields of stored things. The store and the verbs of management return a thing in one and the same
 * schema. Pure.
 */
import Type from "typebox";
import { nullable } from "../../core/protocol/shapes/contract.ts";

export { id, instant, version } from "../../core/operations/fields.ts";

export const limit = () => nullable(Type.Integer({ minimum: 0, description: "Null: no limit." }));
export const limitNames = [
  "session",
  "week",
  "month",
  "requests_per_minute",
  "tokens_per_minute",
  "concurrent_requests",
] as const;
export type LimitName = (typeof limitNames)[number];
