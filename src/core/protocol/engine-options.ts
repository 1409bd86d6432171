/**
 * Writes the choice of tools and the reasoning effort for engines of both OpenAI protocols.
 *
 * Refuses a request with more tools, turns, stop texts or longer names than its engine takes, or than any request may
 * have. Nothing is dropped to make it fit. Pure.
 */

import { Fault } from "../inference/fault.ts";
import {
  type Capability,
  type InferenceRequest,
  type Protocol,
  type Reasoning,
  type ReasoningEffort,
  reasoningEfforts,
  type Sampling,
  type Tool,
} from "../inference/request.ts";
import type { Dialect } from "./dialect.ts";
import { oneOfWords } from "./violation.ts";

/**
 * The engine's value for the effort, or for the next lower effort that the engine has. If the caller gave a token
 * budget and no effort, the effort is derived from the budget: docs/design/protocols.md, Reasoning effort.
 */
export function effortOf({ effort, budgetTokens }: Reasoning, dialect: Dialect): string | undefined {
  const level = effort ?? levelOf(budgetTokens);
  if (level === undefined) return undefined;
  const lowest = level === "none" ? 0 : 1;
  const words = reasoningEfforts.slice(lowest, reasoningEfforts.indexOf(level) + 1).map((one) => dialect.effort[one]);
  return words.findLast((word) => word !== null) ?? undefined;
}

function levelOf(budgetTokens: number | undefined): ReasoningEffort | undefined {
  if (budgetTokens === undefined) return undefined;
  if (budgetTokens < 4096) return "low";
  return budgetTokens < 16_384 ? "medium" : "high";
}

interface ChosenTools {
  tools: Tool[];
  choice: string | undefined;
  /** The name of the tool that must be called, if the engine gets a name in place of `choice`. */
  named?: string;
  parallel: boolean | undefined;
}

/**
 * The tools and the tool choice for an engine.
 * - `allowed_tools` is a hard constraint that engines do not know, so they get only the allowed tools.
 * - If one tool must be called, engines that obey a tool's name get its name and the whole list, which thus stays in
 *   their prefix caches.
 * - Other engines get only that tool, with the choice `required`, which all engines know.
 *
 * `isNameable`: whether the protocol has a plain name for the tool.
 */
export function allowedTools(
  request: InferenceRequest,
  { namedTool }: Dialect,
  isNameable: (tool: Tool) => boolean = () => true,
): ChosenTools {
  const { tools, toolChoice: choice, parallelToolCalls: parallel } = request;
  switch (choice?.kind) {
    case "tool": {
      const only = namedIn(tools, [choice.name]);
      if (namedTool === "name" && only.length === 1 && only.every(isNameable))
        return { tools, choice: undefined, named: choice.name, parallel };
      return { tools: only, choice: "required", parallel: false };
    }
    case "allowed":
      return { tools: namedIn(tools, choice.names), choice: choice.mode, parallel };
    default:
      return { tools, choice: choice?.kind, parallel };
  }
}

function namedIn(tools: Tool[], names: readonly string[]): Tool[] {
  return tools.filter((tool) => names.includes(tool.name));
}

/** The limits of any request, whatever its engine accepts. */
export const absoluteBounds = { tools_max: 4096, turns_max: 20_000, name_characters_max: 256, stops_max: 64 };

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

/**
 * For each list of tools, the bounds that its names were found to satisfy. The check runs before each attempt, and need
 * not read the same names again.
 */
const satisfied = new WeakMap<readonly Tool[], Dialect["bounds"]>();

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
  if (tools.length === 0 || satisfied.get(tools) === bounds) return null;
  const at = tools.findIndex(({ name }) => name.length > bounds.name_characters_max || !bounds.nameForm.test(name));
  if (at < 0) {
    satisfied.set(tools, bounds);
    return null;
  }
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

/**
 * The refusal of a feature that an engine's protocol cannot express. Leaving the feature out would change the answer,
 * so the request is refused, and the refusal names the feature.
 */
export function unsupportedByEngine(feature: string, param: string): Fault {
  const message = `The model's engine does not support ${feature}, which '${param}' asks for. Remove the field, or choose another model.`;
  return new Fault("unsupported_feature", message, { param });
}

/**
 * The refusal of penalties and of a logit bias, for which Messages and Responses have no fields; null if the request
 * has neither.
 */
export function refusedTuning({ frequencyPenalty, presencePenalty, logitBias }: Sampling): Fault | null {
  if (frequencyPenalty) return unsupportedByEngine("penalties", "frequency_penalty");
  if (presencePenalty) return unsupportedByEngine("penalties", "presence_penalty");
  return Object.keys(logitBias ?? {}).length > 0 ? unsupportedByEngine("logit bias", "logit_bias") : null;
}

/** The path of the field that needs a capability, as the caller wrote it. */
export function paramOf({ needs }: InferenceRequest, capability: Capability, otherwise = "messages"): string {
  return needs.find((need) => need.capability === capability)?.param ?? otherwise;
}

/** The refusal of the first feature that only engines of another protocol have; null if the request needs none. */
export function foreignNeed({ nativeNeeds }: InferenceRequest, protocol: Protocol): Fault | null {
  const foreign = nativeNeeds?.find((need) => need.protocol !== protocol);
  return foreign ? unsupportedByEngine(foreign.feature, foreign.param) : null;
}
