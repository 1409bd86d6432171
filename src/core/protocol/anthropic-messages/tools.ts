/**
 * Tells who runs a listed tool. The caller's own tools reach the model, including those of a published type. Tools that
 * Anthropic's service runs are left out, because agents list them on every request. A request is refused with
 * `unsupported_feature` if it chooses one of these, lists nothing else, or lists a tool that only Anthropic's models
 * can call.
 */
import { callerToolType, type MessagesTool, toolPlaceholder } from "./contract.ts";
import { publishedTool } from "./published-tools.ts";

/** Who runs a tool. `family` is the kind of tool without its version. `feature` is the tool's name in a refusal. */
type ToolOwner =
  | { kind: "caller"; family: string }
  | { kind: "service"; family: string; feature: string }
  | { kind: "schemaless"; family: string; feature: string }
  | { kind: "unknown"; family: string };

/** The kinds of tools that Anthropic's service runs. A tool's type is its kind and a date (`web_search_20250305`). */
const serviceTools: readonly [kind: string, feature: string][] = [
  ["web_search", "web search"],
  ["web_fetch", "web fetch"],
  ["code_execution", "code execution"],
  ["tool_search_tool", "tool search at the service"],
  ["advisor", "the advisor tool"],
  ["mcp_toolset", "MCP servers"],
];
const schemalessTools: readonly [kind: string, feature: string][] = [
  ["bash", "this version of the bash tool"],
  ["text_editor", "this version of the text editor tool"],
  ["memory", "this version of the memory tool"],
  ["computer", "computer use"],
  ["computer_toolset", "computer use"],
  ["browser_toolset", "browser use"],
];

export function ownerOf({ type }: MessagesTool): ToolOwner {
  if (type === undefined || type === null || type === callerToolType) return { kind: "caller", family: callerToolType };
  const service = found(serviceTools, type);
  if (service) return { kind: "service", ...service };
  const schemaless = found(schemalessTools, type);
  if (!schemaless) return { kind: "unknown", family: type };
  return publishedTool(type) ? { kind: "caller", family: schemaless.family } : { kind: "schemaless", ...schemaless };
}

function found(list: readonly [kind: string, feature: string][], type: string) {
  for (const [family, feature] of list) {
    if (type === family || (type.startsWith(`${family}_`) && dated(type.slice(family.length))))
      return { family, feature };
  }
  return undefined;
}

/** Whether the text is a date, with or without a variant before it: `_20250305`, `_bm25_20251119`. */
function dated(rest: string): boolean {
  return /^(_[a-z0-9]{1,16})?(_\d{8})?$/.test(rest);
}

/** The tools that the model gets. */
export function callableTools(tools: readonly MessagesTool[]): MessagesTool[] {
  return tools.filter((tool) => ownerOf(tool).kind === "caller" && !isPlaceholder(tool));
}

/** A tool of a published type as a function with its schema. */
export function asFunction(tool: MessagesTool): MessagesTool {
  const published = publishedTool(tool.type);
  if (!published) return tool;
  const { type: _, max_characters: __, ...more } = tool as MessagesTool & { max_characters?: unknown };
  return { ...more, ...published };
}

export function isPlaceholder({ name, defer_loading: deferred }: MessagesTool): boolean {
  return name === toolPlaceholder.name && deferred === toolPlaceholder.defer_loading;
}
