/**
 * The rules between the fields of a Messages request, as schemas of the published contract. The service itself checks
 * these rules by code, which also names the field that is wrong.
 */
import { callerToolType, toolChangeTypes, toolPlaceholder } from "../../core/protocol/anthropic-messages/contract.ts";
import { publishedTools } from "../../core/protocol/anthropic-messages/published-tools.ts";
import { eachItem, present, published, type Relation, when } from "../../core/protocol/rules.ts";
import type { JsonObject } from "./components.ts";

const placeholders = Object.entries(toolPlaceholder).map(([field, value]) => [field, { const: value }]);
const ownTool = when(
  { properties: { type: { enum: [callerToolType, null] } } },
  {
    ...present("name"),
    anyOf: [
      present("input_schema"),
      { properties: Object.fromEntries(placeholders), required: Object.keys(toolPlaceholder) },
    ],
  },
);

/** Each tool of a published type must have the name that Anthropic published for that type. */
const namedTools = [...new Set(Object.values(publishedTools).map(({ name }) => name))].map((name) => {
  const types = Object.keys(publishedTools).filter((type) => publishedTools[type]?.name === name);
  return when(
    { properties: { type: { enum: types } }, required: ["type"] },
    { properties: { name: { const: name } }, required: ["name"] },
  );
});

const callableTool = { allOf: [ownTool, ...namedTools] };

const definition = { properties: { type: { const: "tool_definition" } }, required: ["type"] };
const definedTool = when(
  { properties: { type: { const: "tool_addition" }, tool: definition }, required: ["type", "tool"] },
  { properties: { tool: { properties: { definition: callableTool } } } },
);

const emptyBlock = {
  anyOf: [
    { properties: { type: { const: "text" }, text: { const: "" } } },
    { properties: { type: { enum: toolChangeTypes } } },
  ],
};
/**
 * The schema of a message that counts as having content. A user's message always does, even if its content is empty.
 */
const messageWithContent = {
  anyOf: [
    { properties: { role: { const: "user" } } },
    { properties: { content: { type: "string", minLength: 1 } }, required: ["content"] },
    { properties: { content: { type: "array", contains: { not: emptyBlock } } }, required: ["content"] },
  ],
};

/**
 * The schema of a system message that holds only until the user's next message: it may have text alone, and change no
 * setting that holds longer.
 */
const passingMessage = when(
  {
    properties: { role: { const: "system" }, clear_at: { const: "next_user_message" } },
    required: ["role", "clear_at"],
  },
  {
    properties: {
      content: { items: { properties: { type: { not: { enum: toolChangeTypes } } } } },
      output_config: { type: "null" },
    },
  },
);

const message = { allOf: [passingMessage, { properties: { content: { items: definedTool } } }] };

/** The rules between fields that a schema can state. src/core/protocol/anthropic-messages/validate.ts checks them. */
const relations: Relation<string>[] = [
  {
    field: "messages",
    schema: { properties: { messages: { contains: messageWithContent, items: message } } },
    rules: [],
  },
  eachItem("tools", callableTool),
];

export function withRelations({ description = "", ...schema }: JsonObject): JsonObject {
  return { ...schema, ...(published(relations) as JsonObject), description };
}
