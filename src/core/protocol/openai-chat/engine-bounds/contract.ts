/**
 * The shape of a chat completion request for a model with `bounds: engine`: wider limits, as engines have them, within
 * absolute bounds. Everything else is as in the published shape (contract.ts).
 */
import Type, { type TSchema } from "typebox";
import { reasoningEfforts } from "../../../inference/request.ts";
import { absoluteBounds } from "../../engine-options.ts";
import { engineName, oneOf, optional } from "../../shapes/contract.ts";
import { AllowedTools, ChatCompletionRequest, ChatMessage, CustomTool, FunctionTool, ToolChoice } from "../contract.ts";

const { tools_max, turns_max, stops_max } = absoluteBounds;

const text = Type.String({ minLength: 1 });

/** The shape of a tool whose name may be any that engines accept. */
const named = <Kind extends "function" | "custom">(kind: Kind, tool: TSchema) => {
  const { properties } = tool as unknown as { properties: Record<string, TSchema> };
  const inner = properties[kind] as unknown as { properties: Record<string, TSchema> };
  return Type.Object({ ...properties, [kind]: Type.Object({ ...inner.properties, name: engineName }) });
};

const { allowed_tools } = AllowedTools.properties;
const allowed = Type.Object({
  ...AllowedTools.properties,
  allowed_tools: Type.Object({
    ...allowed_tools.properties,
    tools: Type.Array(allowed_tools.properties.tools.items, { minItems: 1, maxItems: tools_max }),
  }),
});
const otherChoices = ToolChoice.anyOf.filter((choice: TSchema) => choice !== AllowedTools);

export const EngineBoundRequest = Type.Object({
  ...ChatCompletionRequest.properties,
  messages: Type.Array(ChatMessage, { minItems: 1, maxItems: turns_max }),
  tools: optional(
    Type.Array(Type.Union([named("function", FunctionTool), named("custom", CustomTool)]), { maxItems: tools_max }),
  ),
  tool_choice: optional(Type.Union([...otherChoices, allowed])),
  stop: optional(Type.Union([text, Type.Array(text, { maxItems: stops_max })])),
  reasoning_effort: optional(oneOf([...reasoningEfforts])),
});
