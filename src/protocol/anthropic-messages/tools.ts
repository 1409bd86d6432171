/**
 * Whose tools are listed. The caller's own reach the model. Those that Anthropic's service runs are left out, because
 * agents list them on every request; where one is asked for, or nothing else is listed, that is `unsupported_feature`.
 * Those that a caller runs without a schema of its own are refused: no model but Anthropic's knows how to call them.
 */
import { callerToolType, type MessagesTool, toolPlaceholder } from "./contract.ts";

export type ToolOwner =
  | { kind: "caller" }
  /** `feature` in words, as a refusal says it. */
  | { kind: "service"; feature: string }
  | { kind: "schemaless"; feature: string }
  | { kind: "unknown" };

/** Types carry dates (`web_search_20250305`); what stands before the date is the kind. */
const serviceTools: readonly [kind: string, feature: string][] = [
  ["web_search", "web search"],
  ["web_fetch", "web fetch"],
  ["code_execution", "code execution"],
  ["tool_search_tool", "tool search at the service"],
  ["advisor", "the advisor tool"],
  ["mcp_toolset", "MCP servers"],
];
const schemalessTools: readonly [kind: string, feature: string][] = [
  ["bash", "the bash tool"],
  ["text_editor", "the text editor tool"],
  ["memory", "the memory tool"],
  ["computer", "computer use"],
  ["computer_toolset", "computer use"],
  ["browser_toolset", "browser use"],
];

export function ownerOf({ type }: MessagesTool): ToolOwner {
  if (type === undefined || type === null || type === callerToolType) return { kind: "caller" };
  const service = featureOf(serviceTools, type);
  if (service) return { kind: "service", feature: service };
  const schemaless = featureOf(schemalessTools, type);
  return schemaless ? { kind: "schemaless", feature: schemaless } : { kind: "unknown" };
}

function featureOf(list: readonly [kind: string, feature: string][], type: string): string | undefined {
  const named = list.find(([kind]) => type === kind || (type.startsWith(`${kind}_`) && dated(type.slice(kind.length))));
  return named?.[1];
}

/** `_20250305`, and the names of variants before it: `_bm25_20251119`. */
function dated(rest: string): boolean {
  return /^(_[a-z0-9]{1,16})?(_\d{8})?$/.test(rest);
}

/** The tools that the model is told of; tools with `defer_loading` are ordinary ones. */
export function toldTools(tools: readonly MessagesTool[]): MessagesTool[] {
  return tools.filter((tool) => ownerOf(tool).kind === "caller" && !isPlaceholder(tool));
}

export function isPlaceholder({ name, defer_loading: deferred }: MessagesTool): boolean {
  return name === toolPlaceholder.name && deferred === toolPlaceholder.defer_loading;
}
