/** Tools as a chat caller lists and names them: functions, and custom ones, which take plain text. */
import type { ChatCompletionRequest, CustomTool, NamedTool, ToolDefinition } from "./contract.ts";

export function nameOf(tool: ToolDefinition | NamedTool): string {
  return tool.type === "custom" ? tool.custom.name : tool.function.name;
}

export function isCustom(tool: ToolDefinition): tool is CustomTool {
  return tool.type === "custom";
}

/** Engines call these as functions, and the caller reads their calls as plain text. */
export function customNames({ tools }: Pick<ChatCompletionRequest, "tools">): ReadonlySet<string> {
  return new Set((tools ?? []).filter(isCustom).map(nameOf));
}
