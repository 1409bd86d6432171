/**
 * Fields that Sluice adds to what the caller asked for, and that an engine may refuse: reasoning and opaque values of
 * earlier answers. If a refusal names one of them, the request is sent once more without it. Pure.
 */
import type { InferenceRequest } from "../inference/request.ts";
import type { Dialect } from "./dialect.ts";
import { textOf } from "./json.ts";
import { headOf } from "./overflow.ts";
import { errorOf } from "./refusal.ts";

/** The dialect without the fields that the refusal names; null if the request had none of those fields. */
export function withoutRefusedField(
  dialect: Dialect,
  { turns }: InferenceRequest,
  status: number,
  body: unknown,
): Dialect | null {
  if (status !== 400 && status !== 422) return null;
  const error = errorOf(body);
  const said = `${textOf(error.param)}\n${headOf(error)}`;
  const isNamed = (field: string) => new RegExp(`(?:^|['"\`.\\]])${field}(?:$|['"\`.\\[\\s])`, "m").test(said);
  const hasThoughts = turns.some(({ parts }) => parts.some(({ kind }) => kind === "reasoning"));
  if (!hasThoughts) return null;
  const out = dialect.reasoning.out.filter((field) => !isNamed(field));
  const carries = dialect.carries.filter(({ path }) => !isNamed(path[0]!));
  if (out.length === dialect.reasoning.out.length && carries.length === dialect.carries.length) return null;
  return { ...dialect, reasoning: { ...dialect.reasoning, out }, carries };
}
