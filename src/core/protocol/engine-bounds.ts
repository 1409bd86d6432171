/**
 * Refuses a request with more tools, turns, stop texts or longer names than its engine takes, or than any request may
 * have. Nothing is dropped to make it fit. Pure.
 */
import { Fault } from "../inference/fault.ts";
import { type InferenceRequest, type ReasoningEffort, reasoningEfforts } from "../inference/request.ts";
import type { Dialect } from "./dialect.ts";
import { oneOfWords } from "./violation.ts";

/** The most that any request may have, whatever its engine takes. */
export const absoluteBounds = { tools_max: 4096, turns_max: 20_000, name_characters_max: 256, stops_max: 64 };

/** The refusal of a request beyond the absolute bounds. */
export function beyondAll({ tools, turns, stop, stopParam = "stop" }: InferenceRequest): Fault | null {
  const { tools_max, turns_max, name_characters_max, stops_max } = absoluteBounds;
  if (tools.length > tools_max) return tooMany("tools", tools_max, "tools", tools.length);
  if (turns.length > turns_max) return tooMany("messages", turns_max, "messages", turns.length);
  if (stop.length > stops_max) return tooMany(stopParam, stops_max, "stop sequences", stop.length);
  const at = tools.findIndex(({ name }) => name.length > name_characters_max);
  return at < 0 ? null : tooMany(`tools[${at}].name`, name_characters_max, "characters", tools[at]!.name.length);
}

function tooMany(param: string, most: number, what: string, count: number): Fault {
  return new Fault("invalid_value", `'${param}' must have at most ${most} ${what}, but has ${count}.`, { param });
}

export function beyondBounds(
  { tools, stop, stopParam = "stop", reasoning }: InferenceRequest,
  { bounds, effort }: Dialect,
): Fault | null {
  const { exactEffort } = reasoning ?? {};
  if (exactEffort !== undefined && effort[exactEffort] === null) return unknownEffort(exactEffort, effort);
  if (stop.length > bounds.stops_max)
    return beyond(stopParam, `at most ${bounds.stops_max} stop sequences`, `has ${stop.length}`);
  if (tools.length > bounds.tools_max)
    return beyond("tools", `at most ${bounds.tools_max} tools`, `has ${tools.length}`);
  const at = tools.findIndex(({ name }) => name.length > bounds.name_characters_max || !bounds.nameForm.test(name));
  if (at < 0) return null;
  const { name } = tools[at]!;
  return name.length > bounds.name_characters_max
    ? beyond(
        `tools[${at}]`,
        `names of at most ${bounds.name_characters_max} characters`,
        `has a name of ${name.length}`,
      )
    : beyond(`tools[${at}]`, "no such name", "has a name with characters that it refuses");
}

function unknownEffort(level: ReasoningEffort, effort: Dialect["effort"]): Fault {
  const known = reasoningEfforts.filter((one) => effort[one] !== null);
  const message = `'reasoning_effort' must be ${oneOfWords(known)} for the model's engine, but is '${level}'.`;
  return new Fault("invalid_value", message, { param: "reasoning_effort" });
}

function beyond(param: string, takes: string, has: string): Fault {
  const message = `The model's engine takes ${takes}, and '${param}' ${has}. Change the field, or choose another model.`;
  return new Fault("unsupported_feature", message, { param });
}
