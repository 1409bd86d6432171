/**
 * Validates the body of a Messages request. It checks `thread` first, because clients act on its refusal, then the shape
 * (contract.ts), and then the rules between fields. It reports the first offence.
 */
import { Fault } from "../../inference/fault.ts";
import type { Model } from "../../inference/model.ts";
import { contract, type UncheckedItems } from "../contract.ts";
import { isGiven, isObject } from "../json.ts";
import { obeying, type Rules } from "../rules.ts";
import {
  choiceWithoutTools,
  describe,
  featureNamed,
  invalid,
  missing,
  notSupported,
  unanswering,
  unlistedTool,
  type Violation,
  violationFault,
} from "../violation.ts";
import {
  CountTokensRequest,
  type DocumentBlockParam,
  type ImageBlockParam,
  MessagesRequest,
  type SystemMessageParam,
} from "./contract.ts";
import { EngineBoundMessages } from "./engine-bounds/contract.ts";
import { imageKindOf, isBase64 } from "./media.ts";
import { publishedTool } from "./published-tools.ts";
import { brokenChange, changesIn, definedBy, type ListedTool, toolsInForce } from "./tool-changes.ts";
import { callableTools, isPlaceholder, ownerOf } from "./tools.ts";

/** The lists and texts that agents send again with every turn. */
export const messagesRepeats = ["system", "messages", "tools"] as const;
const request = contract(MessagesRequest, { repeated: messagesRepeats });
const engineRequest = contract(EngineBoundMessages, { repeated: messagesRepeats });
const count = contract(CountTokensRequest);

/**
 * Checks the body, and returns it as a request. `unchecked`: the items of lists that have to be checked, null for all
 * (`Contract`). `bounds`: the setting of the model. Throws a Fault: `missing_field`, `invalid_value` or
 * `unsupported_feature`.
 */
export function validateMessagesRequest(
  body: unknown,
  unchecked: UncheckedItems | null = null,
  bounds?: Model["bounds"],
): MessagesRequest {
  if (isObject(body) && isGiven(body.thread)) throw threadRefused();
  const shape = bounds === "engine" ? engineRequest : request;
  if (!shape.satisfied(body, [], unchecked)) throw violationFault(warmingOnly(body) ?? shape.violation(body));
  // The static types of both shapes are the same.
  return obeying(body as MessagesRequest, bounds === "engine" ? rules : plainRules);
}

/**
 * Checks the body of a request to count tokens, and returns it. Only its shape is checked: fields that would be refused
 * in a request for an answer are ignored.
 */
export function validateCountTokens(body: unknown): CountTokensRequest {
  if (!count.satisfied(body)) throw violationFault(count.violation(body));
  return body;
}

/**
 * The refusal of `thread`. The SDK's tool runner reads its details, and then sends the whole history. Any other refusal
 * ends the tool runner.
 */
function threadRefused(): Fault {
  return new Fault("unsupported_feature", "This service does not store threads. Send the whole conversation instead.", {
    param: "thread",
    body: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
  });
}

/**
 * The violation of a request with `max_tokens: 0`, which asks to fill a cache without an answer, if this is its first
 * offence.
 */
function warmingOnly(body: unknown): Violation | null {
  if (!isObject(body) || body.max_tokens !== 0) return null;
  if (request.violation(body).param !== "max_tokens") return null;
  return notSupported("max_tokens", "filling a cache without an answer");
}

const rules: Rules<MessagesRequest> = [
  ["messages", conversation],
  ["messages", changedTools],
  ["tools", listedTools],
  ["tool_choice", choosableTool],
];

/**
 * The rules for models without `bounds: engine`. Names of tools are checked again here: an item that was found valid in
 * an earlier request may have been so only for a model with `bounds: engine`.
 */
const plainRules: Rules<MessagesRequest> = [["tools", plainNames], ...rules];

// ---- tools -----------------------------------------------------------------------------------------------------------

function plainNames({ tools }: MessagesRequest): Violation | null {
  const at = (tools ?? []).findIndex(({ name }) => typeof name === "string" && !plainName.test(name));
  if (at < 0) return null;
  const words = `must be 1 to 128 letters, digits, underscores or hyphens, but is ${describe(tools![at]!.name)}.`;
  return invalid(`tools[${at}].name`, words);
}
const plainName = /^[a-zA-Z0-9_-]{1,128}$/;

function listedTools({ tools, messages }: MessagesRequest): Violation | null {
  const listed = (tools ?? []).map((tool, at) => ({ tool, param: `tools[${at}]` }));
  return firstOf(listed, uncallable) ?? nothingButHosted([...listed, ...definedBy(changesIn({ messages }))]);
}

function changedTools(body: MessagesRequest): Violation | null {
  const changes = changesIn(body);
  if (changes.length === 0) return null;
  const defined = definedBy(changes);
  return (
    firstOf(defined, uncallable) ??
    brokenChange(body, changes) ??
    (isGiven(body.tools) ? null : nothingButHosted(defined))
  );
}

/** The violation of a listed tool that no model of this service could call. */
function uncallable({ tool, param }: ListedTool): Violation | null {
  const owner = ownerOf(tool);
  const published = publishedTool(tool.type);
  if (owner.kind === "schemaless") return notSupported(`${param}.type`, featureNamed(owner.feature, String(tool.type)));
  if (owner.kind === "unknown") return notSupported(`${param}.type`, `a tool whose type is ${describe(tool.type)}`);
  if (owner.kind === "service") return null;
  if (!isGiven(tool.name))
    return missing(`${param}.name`, `It must be ${published ? `'${published.name}'` : "a name"}.`);
  if (published && tool.name !== published.name) {
    const words = `must be '${published.name}', the name of tools of this type, but is ${describe(tool.name)}.`;
    return invalid(`${param}.name`, words);
  }
  if (published) return null;
  const hasSchema = isGiven(tool.input_schema) || isPlaceholder(tool);
  return hasSchema ? null : missing(`${param}.input_schema`, "It must be a JSON Schema of an object.");
}

/**
 * The violation of a request that lists only hosted tools. Agents list those on every request, but without any other
 * tool the request needs one of them.
 */
function nothingButHosted(listed: readonly ListedTool[]): Violation | null {
  if (callableTools(listed.map(({ tool }) => tool)).length > 0) return null;
  return firstOf(listed, ({ tool, param }) => {
    const owner = ownerOf(tool);
    return owner.kind === "service"
      ? notSupported(`${param}.type`, featureNamed(owner.feature, String(tool.type)))
      : null;
  });
}

function choosableTool(body: MessagesRequest): Violation | null {
  const { tool_choice: choice } = body;
  if (!choice || choice.type === "auto" || choice.type === "none") return null;
  const inForce = toolsInForce(body);
  const callable = callableTools(inForce);
  if (choice.type === "any") return callable.length > 0 ? null : choiceWithoutTools;
  if (callable.some((tool) => tool.name === choice.name)) return null;
  const owner = inForce.filter((tool) => tool.name === choice.name).map(ownerOf)[0];
  if (owner?.kind === "service") return notSupported("tool_choice.name", owner.feature);
  const names = callable.flatMap(({ name }) => (name ? [name] : []));
  return unlistedTool("tool_choice.name", choice.name, names);
}

// ---- messages --------------------------------------------------------------------------------------------------------

/**
 * The violation of the conversation's rules: tool results answer an earlier tool use, images and PDFs are of the type
 * that they state, and some message has content.
 */
function conversation({ messages }: MessagesRequest): Violation | null {
  const calls = new Set<string>();
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!;
    const { role, content } = message;
    const outlasting = role === "system" ? outlastsItsTurn(message, at) : null;
    if (outlasting) return outlasting;
    if (!Array.isArray(content)) continue;
    for (let block = 0; block < content.length; block++) {
      const found = content[block]!;
      if (found.type === "text") continue;
      if (found.type === "tool_use") {
        if (role === "assistant") calls.add(found.id);
        continue;
      }
      if (found.type === "tool_result" && !calls.has(found.tool_use_id)) {
        const call = "a 'tool_use' block in an earlier assistant message";
        const holder = "the assistant message with its 'tool_use'";
        return unanswering(`messages[${at}].content[${block}].tool_use_id`, found.tool_use_id, call, holder);
      }
      const wrong = mediaOf(found, () => `messages[${at}].content[${block}]`);
      if (wrong) return wrong;
    }
  }
  return messages.some(hasContent) ? null : invalid("messages", "must have at least one message with content.");
}

/** Whether a message counts as having content. A user's message always does, even if it is empty. */
function hasContent({ role, content }: MessagesRequest["messages"][number]): boolean {
  if (role === "user" || !Array.isArray(content)) return role === "user" || Boolean(content);
  return content.some((block) => (block.type === "text" ? block.text !== "" : !("tool" in block)));
}

/** The violation of a system message that holds until the user's next message but changes settings that hold longer. */
function outlastsItsTurn({ clear_at, content, output_config }: SystemMessageParam, at: number): Violation | null {
  if (clear_at !== "next_user_message") return null;
  const change = Array.isArray(content) ? content.findIndex(({ type }) => type !== "text") : -1;
  if (change === -1 && !isGiven(output_config)) return null;
  return invalid(
    `messages[${at}].${change === -1 ? "output_config" : `content[${change}].type`}`,
    "has no place in a message with 'clear_at: next_user_message'. Send it in a system message of its own.",
  );
}

/** The violation of an image or PDF, in this block or nested in it, whose bytes are not of the type that it states. */
function mediaOf(block: { type: string }, path: () => string): Violation | null {
  if (block.type === "image") return image(block as ImageBlockParam, path);
  if (block.type === "document") return document(block as DocumentBlockParam, path);
  const { content } = block as { content?: unknown };
  if (block.type !== "tool_result" || !Array.isArray(content)) return null;
  return firstOf(content, (inner: { type: string }, at) => mediaOf(inner, () => `${path()}.content[${at}]`));
}

function image({ source }: ImageBlockParam, path: () => string): Violation | null {
  if (source.type !== "base64" || imageKindOf(source.data) !== null) return null;
  return invalid(`${path()}.source.data`, "must be a JPEG, PNG, GIF or WebP image in base64.");
}

function document({ source }: DocumentBlockParam, path: () => string): Violation | null {
  if (source.type === "base64")
    return isBase64(source.data) ? null : invalid(`${path()}.source.data`, "must be a PDF in base64.");
  if (source.type === "text" || typeof source.content === "string") return null;
  return firstOf(source.content, (inner, at) => mediaOf(inner, () => `${path()}.source.content[${at}]`));
}

function firstOf<Item>(items: readonly Item[], judge: (item: Item, at: number) => Violation | null): Violation | null {
  for (let at = 0; at < items.length; at++) {
    const found = judge(items[at]!, at);
    if (found) return found;
  }
  return null;
}
