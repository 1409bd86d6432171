/** The functions and custom tools that a chat caller lists, and their names. */
import type { ChatCompletionRequest, CustomTool, NamedTool, ToolDefinition } from "./contract.ts";

export function nameOf(tool: ToolDefinition | NamedTool): string {
  return tool.type === "custom" ? tool.custom.name : tool.function.name;
}

export function isCustom(tool: ToolDefinition): tool is CustomTool {
  return tool.type === "custom";
}

/** The names of custom tools. Engines call them as functions, and the caller gets their calls with plain text. */
export function customNames({ tools }: Pick<ChatCompletionRequest, "tools">): ReadonlySet<string> {
  return new Set((tools ?? []).filter(isCustom).map(nameOf));
}
