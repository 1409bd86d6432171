/**
 * Validates the body of a chat completion request: first its shape (contract.ts), then the rules between fields. It reports
 * the first offence in document order.
 */
import { Fault } from "../../inference/fault.ts";
import type { Model } from "../../inference/model.ts";
import { contract, type UncheckedItems } from "../contract.ts";
import { isGiven } from "../json.ts";
import { obeying, type Rules, rulesOf } from "../rules.ts";
import {
  choiceWithoutTools,
  describe,
  invalid,
  missing,
  unanswering,
  unlistedTool,
  type Violation,
  violationFault,
} from "../violation.ts";
import { type AssistantMessage, assistantWords, ChatCompletionRequest, chatRelations } from "./contract.ts";
import { nameOf } from "./decode-request.ts";
import { EngineBoundRequest } from "./engine-bounds/contract.ts";

/** The names of the fields that agents send again with every turn. */
export const chatRepeats = ["messages", "tools"] as const;
const request = contract(ChatCompletionRequest, { topLevel: "closed", repeated: chatRepeats });
const engineRequest = contract(EngineBoundRequest, { topLevel: "closed", repeated: chatRepeats });

/**
 * Returns the body as a request. `extraParams`: the fields beyond the contract that the model accepts. `unchecked`: see
 * `Contract`. `bounds`: the setting of the model. Throws a Fault: `missing_field`, `invalid_value`, `unknown_field`,
 * `mutually_exclusive` or `unsupported_feature`.
 */
export function validateChatRequest(
  body: unknown,
  extraParams: readonly string[],
  unchecked: UncheckedItems | null = null,
  bounds?: Model["bounds"],
): ChatCompletionRequest {
  if (bounds === "engine") return withinEngineBounds(body, extraParams, unchecked);
  if (!request.satisfied(body, extraParams, unchecked))
    throw withSettingNamed(violationFault(request.violation(body, extraParams)), body, extraParams);
  try {
    return obeying(body, rules);
  } catch (fault) {
    throw fault instanceof Fault ? withSettingNamed(fault, body, extraParams) : fault;
  }
}

/**
 * Returns the body as a request of a model with `bounds: engine`, whose shape allows more values than the static type.
 */
function withinEngineBounds(
  body: unknown,
  extraParams: readonly string[],
  unchecked: UncheckedItems | null,
): ChatCompletionRequest {
  if (!engineRequest.satisfied(body, extraParams, unchecked))
    throw violationFault(engineRequest.violation(body, extraParams));
  return obeying(body as ChatCompletionRequest, engineRules);
}

/** Adds to the fault's message the setting that would allow the request, if the request breaks no other rule. */
function withSettingNamed(fault: Fault, body: unknown, extraParams: readonly string[]): Fault {
  try {
    withinEngineBounds(body, extraParams, null);
  } catch {
    return fault;
  }
  const setting = "(Whoever runs this service can allow this with 'bounds: engine' of the model.)";
  return new Fault(fault.code, `${fault.message} ${setting}`, fault.details);
}

const rules: Rules<ChatCompletionRequest> = [
  ["messages", conversation],
  ["tools", plainNames],
  ...rulesOf(chatRelations),
  ["tool_choice", chosenToolExists],
];

/**
 * The rules for a model with `bounds: engine`. Without tools, `auto`, `none` and a request for parallel calls have no
 * effect, and are accepted.
 */
const engineRules: Rules<ChatCompletionRequest> = [
  ["messages", conversation],
  ...rulesOf(chatRelations.filter(({ field }) => field !== "tool_choice" && field !== "parallel_tool_calls")),
  ["tool_choice", chosenToolExists],
  ["tool_choice", hasToolsToChoose],
];

function hasToolsToChoose({ tools, tool_choice: choice }: ChatCompletionRequest): Violation | null {
  return tools?.length || choice === "auto" || choice === "none" ? null : choiceWithoutTools;
}

/**
 * The violation of a tool's name. The shapes of tools that an earlier request had are not checked again, and that request
 * may have been for a model with `bounds: engine`, which allows other names. So names are checked in every request.
 */
function plainNames({ tools }: ChatCompletionRequest): Violation | null {
  const at = (tools ?? []).findIndex((tool) => !plainName.test(nameOf(tool)));
  if (at < 0) return null;
  const tool = tools![at]!;
  const words = `must be 1 to 64 letters, digits, underscores or hyphens, but is ${describe(nameOf(tool))}.`;
  return invalid(`tools[${at}].${tool.type}.name`, words);
}
const plainName = /^[a-zA-Z0-9_-]{1,64}$/;

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

/**
 * The violation of a conversation's rules: each assistant message must have content, and each tool message must answer
 * an earlier call.
 */
function conversation({ messages }: ChatCompletionRequest): Violation | null {
  const calls = new Set<string>();
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!;
    if (message.role === "assistant") {
      for (const call of message.tool_calls ?? []) calls.add(call.id);
      if (!hasContent(message))
        return missing(
          `messages[${index}].content`,
          "An assistant message needs 'content', unless it has 'tool_calls', 'refusal' or 'reasoning_content'.",
        );
    } else if (message.role === "tool" && !calls.has(message.tool_call_id)) {
      const call = "a tool call in an earlier assistant message";
      const holder = "the assistant message with its 'tool_calls'";
      return unanswering(`messages[${index}].tool_call_id`, message.tool_call_id, call, holder);
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
