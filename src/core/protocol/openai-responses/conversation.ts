/** Rules of a conversation beyond the shape of its items. */
import { invalid, unanswering, type Violation } from "../violation.ts";
import { type InputItem, userParts } from "./contract.ts";

/** The violation of the first tool output that has no earlier call. */
export function firstOrphan(items: readonly InputItem[], pathOf: (at: number) => string): Violation | null {
  const calls = new Set<string>();
  for (let at = 0; at < items.length; at++) {
    const item = items[at]!;
    if (item.type === "function_call" || item.type === "custom_tool_call") calls.add(item.call_id);
    if (item.type !== "function_call_output" && item.type !== "custom_tool_call_output") continue;
    if (calls.has(item.call_id)) continue;
    return unanswering(`${pathOf(at)}.call_id`, item.call_id, "an earlier call", "the item of the call");
  }
  return null;
}

/** The violation of an item that asks for a summary of the conversation and is not the last one. */
export function firstEarlyTrigger(items: readonly InputItem[], pathOf: (at: number) => string): Violation | null {
  const at = items.findIndex(({ type }) => type === "compaction_trigger");
  if (at === -1 || at === items.length - 1) return null;
  return invalid(
    pathOf(at),
    "asks for a summary of the conversation, and must be the last item. Remove it, or move it to the end.",
  );
}

/** The violation of the first image or file in a message that is not the user's: no protocol has a place for it. */
export function misplacedPart(item: InputItem, path: () => string): Violation | null {
  if (item.type !== "message" || item.role === "user" || typeof item.content === "string") return null;
  const at = item.content.findIndex(({ type }) => userParts.includes(type));
  if (at === -1) return null;
  const what = item.content[at]?.type === "input_image" ? "an image" : "a file";
  const param = `${path()}.content[${at}].type`;
  const message = `This service does not support ${what} in this role, which '${param}' asks for. Send it in a user message.`;
  return { code: "unsupported_feature", param, message };
}
