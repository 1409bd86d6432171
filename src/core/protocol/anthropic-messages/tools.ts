/**
 * Tells who runs a listed tool. The caller's own tools reach the model, including those of a published type. Tools that
 * Anthropic's service runs are left out, because agents list them on every request. A request is refused with
 * `unsupported_feature` if it chooses one of these, lists nothing else, or lists a tool that only Anthropic's models
 * can call.
 */
import type { Tool } from "../../inference/request.ts";
import { compact, type JsonObject } from "../json.ts";
import { callerToolType, type MessagesTool, toolPlaceholder } from "./contract.ts";
import { wireOf, withNative } from "./native.ts";
import { publishedTool } from "./published-tools.ts";

/** Who runs a tool. `family` is the kind of tool without its version. `feature` is the tool's name in a refusal. */
type ToolOwner =
  | { kind: "caller"; family: string }
  | { kind: "service"; family: string; feature: string }
  | { kind: "schemaless"; family: string; feature: string }
  | { kind: "unknown"; family: string };

const hostedSearch = "tool_search_tool";

/** The kinds of tools that Anthropic's service runs. A tool's type is its kind and a date (`web_search_20250305`). */
const serviceTools: readonly [kind: string, feature: string][] = [
  ["web_search", "web search"],
  ["web_fetch", "web fetch"],
  ["code_execution", "code execution"],
  [hostedSearch, "tool search at the service"],
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

const modelledOfTool = ["type", "name", "description", "input_schema", "strict"];

export function decodeTools(tools: readonly MessagesTool[]): Tool[] {
  return callableTools(tools).map(decodeTool);
}

export function decodeTool(wire: MessagesTool): Tool {
  const tool = asFunction(wire);
  const { name, description, input_schema: parameters, strict, defer_loading } = tool;
  const decoded: Tool = { kind: "function", name: name ?? "", ...compact({ description, parameters, strict }) };
  if (defer_loading === true) decoded.isDeferred = true;
  return withNative(decoded, tool, modelledOfTool, ["cache_control", "input_examples", "eager_input_streaming"]);
}

/** The tool for an engine. `keepsDeferred`: whether the engine knows tools that the model sees once they were found. */
export function encodeTool(tool: Tool, keepsDeferred = false): Readonly<JsonObject> {
  const { name, description, parameters, strict, native, isDeferred } = tool;
  const schema = parameters ?? { properties: {} };
  const input_schema = schema.type === undefined ? { type: "object", ...schema } : schema;
  const wire = { ...(wireOf(native) ?? { name, description, strict: strict || undefined }), input_schema };
  return isDeferred && keepsDeferred ? { ...wire, defer_loading: true } : wire;
}

function asFunction(tool: MessagesTool): MessagesTool {
  const published = publishedTool(tool.type);
  if (!published) return tool;
  const { type: _, max_characters: __, ...more } = tool as MessagesTool & { max_characters?: unknown };
  return { ...more, ...published };
}

/**
 * Whether tools may be deferred: hidden from the model until a tool search finds them. Not if the tool search is one
 * that Anthropic's service runs, since nothing would find them; an engine also requires a tool that is not deferred.
 */
export function mayBeDeferred(listed: readonly MessagesTool[], tools: readonly Tool[]): boolean {
  return tools.some(({ isDeferred }) => !isDeferred) && !listed.some((tool) => ownerOf(tool).family === hostedSearch);
}

export function isPlaceholder({ name, defer_loading: deferred }: MessagesTool): boolean {
  return name === toolPlaceholder.name && deferred === toolPlaceholder.defer_loading;
}
