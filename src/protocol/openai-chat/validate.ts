/**
 * Validates the body of a chat completion request: first its shape (contract.ts), then the rules between fields. It reports
 * the first offence in document order.
 */
import { contract, type UncheckedItems } from "../contract.ts";
import { isGiven } from "../json.ts";
import { obeying, type Rules, rulesOf } from "../rules.ts";
import { describe, invalid, missing, unlistedTool, type Violation, violationFault } from "../violation.ts";
import { type AssistantMessage, assistantWords, ChatCompletionRequest, chatRelations } from "./contract.ts";
import { nameOf } from "./tools.ts";

/** The fields that agents send again with every turn: lists, and texts. */
export const chatRepeats = ["messages", "tools"] as const;
const request = contract(ChatCompletionRequest, { topLevel: "closed", repeated: chatRepeats });

/**
 * The body as a request. `extraParams` are the fields beyond the contract that the model named in the body accepts;
 * `unchecked` as in Contract. Throws a Fault: `missing_field`, `invalid_value`, `unknown_field`, `mutually_exclusive` or
 * `unsupported_feature`.
 */
export function validateChatRequest(
  body: unknown,
  extraParams: readonly string[],
  unchecked: UncheckedItems | null = null,
): ChatCompletionRequest {
  if (!request.satisfied(body, extraParams, unchecked)) throw violationFault(request.violation(body, extraParams));
  return obeying(body, rules);
}

const rules: Rules<ChatCompletionRequest> = [
  ["messages", conversation],
  ...rulesOf(chatRelations),
  ["tool_choice", chosenToolExists],
];

function chosenToolExists({ tools, tool_choice: choice }: ChatCompletionRequest): Violation | null {
  if (typeof choice !== "object" || choice === null || !tools) return null;
  const chosen =
    choice.type === "allowed_tools"
      ? choice.allowed_tools.tools.map((tool, at) => ({ tool, path: `tool_choice.allowed_tools.tools[${at}]` }))
      : [{ tool: choice, path: "tool_choice" }];
  const names = tools.map(nameOf);
  const stray = chosen.find(({ tool }) => !names.includes(nameOf(tool)));
  return stray ? unlistedTool(`${stray.path}.${stray.tool.type}.name`, nameOf(stray.tool), names) : null;
}

/** Each assistant message has content, and each tool message answers an earlier call. */
function conversation({ messages }: ChatCompletionRequest): Violation | null {
  const calls = new Set<string>();
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!;
    if (message.role === "assistant") {
      for (const call of message.tool_calls ?? []) calls.add(call.id);
      if (!hasContent(message)) return silentAssistant(`messages[${index}].content`);
    } else if (message.role === "tool" && !calls.has(message.tool_call_id)) {
      return unanswering(`messages[${index}].tool_call_id`, message.tool_call_id);
    }
  }
  return null;
}

function hasContent(message: AssistantMessage): boolean {
  for (const field of assistantWords) {
    const words = message[field];
    if (Array.isArray(words) ? words.length > 0 : isGiven(words)) return true;
  }
  return false;
}

function silentAssistant(param: string): Violation {
  return missing(
    param,
    "An assistant message needs 'content', unless it has 'tool_calls', 'refusal' or 'reasoning_content'.",
  );
}

function unanswering(param: string, callId: string): Violation {
  const found = describe(callId);
  return invalid(
    param,
    `must be the id of a tool call in an earlier assistant message, but is ${found}. Send the assistant message with its 'tool_calls' too.`,
  );
}
