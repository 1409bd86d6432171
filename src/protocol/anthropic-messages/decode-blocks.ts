/** Content blocks of a request → parts of the centre. Each tells what it needs of the model, with its path. */
import { compact } from "../../inference/compact.ts";
import { Needs } from "../../inference/needs.ts";
import type { AssistantPart, InputPart, NativeNeed, TextPart } from "../../inference/request.ts";
import type {
  AssistantContentBlock,
  DocumentBlockParam,
  ImageBlockParam,
  SearchResultBlockParam,
  TextBlockParam,
  ToolResultContent,
  UserContentBlock,
} from "./contract.ts";
import { documentHead, searchResultText, toolReferenceText } from "./documents.ts";
import { imageKindOf } from "./images.ts";
import { native } from "./native.ts";
import { signatureOf } from "./signature.ts";

/** Needs, and what only engines that speak Messages can do: of each feature the first field that asks for it. */
export class MessagesNeeds extends Needs {
  readonly native: NativeNeed[] = [];

  addNative(feature: string, param: string): void {
    if (this.native.some((known) => known.feature === feature)) return;
    this.native.push({ protocol: "anthropic-messages", feature, param });
  }
}

export function textPart(block: TextBlockParam): TextPart {
  return { kind: "text", text: block.text, ...native(block, ["type", "text"], ["cache_control", "citations"]) };
}

export function textParts(content: string | readonly TextBlockParam[]): TextPart[] {
  return typeof content === "string" ? [{ kind: "text", text: content }] : content.map(textPart);
}

/** What stands in a user's message or in a tool result, `tool_result` itself excepted. */
export function inputParts(
  block: Exclude<UserContentBlock, { type: "tool_result" }> | ToolResultContent,
  path: string,
  needs: MessagesNeeds,
): InputPart[] {
  switch (block.type) {
    case "text":
      return [textPart(block)];
    case "image":
      return [imagePart(block, path, needs)];
    case "document":
      return documentParts(block, path, needs);
    case "search_result":
      return [searchResultPart(block, path, needs)];
    case "tool_reference":
      return [{ kind: "text", text: toolReferenceText(block.tool_name) }];
  }
}

function imagePart(block: ImageBlockParam, path: string, needs: MessagesNeeds): InputPart {
  needs.add("image", path);
  const { source } = block;
  const url =
    source.type === "url" ? source.url : `data:${imageKindOf(source.data) ?? source.media_type};base64,${source.data}`;
  return { kind: "image", url, ...native(block, ["type", "source"], ["cache_control", "transformations"]) };
}

function documentParts(block: DocumentBlockParam, path: string, needs: MessagesNeeds): InputPart[] {
  const { source } = block;
  if (block.citations?.enabled) needs.addNative("citations", `${path}.citations`);
  // The whole block is one wire object, however many parts it is to others.
  const whole = native(block, ["type", "title", "context"], ["source", "cache_control", "citations"]);
  const head = documentHead(block);
  if (source.type === "base64") {
    needs.add("file", path);
    const data = `data:${source.media_type};base64,${source.data}`;
    const filename = block.title || "document.pdf";
    const file: InputPart = { kind: "file", data, filename, mediaType: source.media_type, ...whole };
    return block.context ? [{ kind: "text", text: head, ...whole }, file] : [file];
  }
  const content = source.type === "text" ? source.data : source.content;
  if (typeof content === "string") return [{ kind: "text", text: head + content, ...whole }];
  const inner = content.flatMap((part, at) => inputParts(part, `${path}.source.content[${at}]`, needs));
  const headed: InputPart[] = head === "" && inner.length > 0 ? inner : [{ kind: "text", text: head }, ...inner];
  return headed.map((part) => ({ ...part, ...whole }));
}

function searchResultPart(block: SearchResultBlockParam, path: string, needs: MessagesNeeds): InputPart {
  if (block.citations?.enabled) needs.addNative("citations", `${path}.citations`);
  const whole = native(block, ["type", "title", "content"], ["source", "cache_control", "citations"]);
  return { kind: "text", text: searchResultText(block), ...whole };
}

export function assistantParts(content: string | readonly AssistantContentBlock[]): AssistantPart[] {
  if (typeof content === "string") return content === "" ? [] : [{ kind: "text", text: content }];
  return content.filter((block) => block.type !== "text" || block.text !== "").map(assistantPart);
}

function assistantPart(block: AssistantContentBlock): AssistantPart {
  switch (block.type) {
    case "text":
      return textPart(block);
    case "thinking":
      return { kind: "reasoning", text: block.thinking, ...compact({ signature: signatureOf(block.signature) }) };
    case "redacted_thinking":
      return { kind: "reasoning", text: "", encrypted: block.data };
    case "tool_use":
      return {
        kind: "tool-call",
        callId: block.id,
        toolName: block.name,
        arguments: JSON.stringify(block.input ?? {}),
        ...native(block, ["type", "id", "name", "input"], ["cache_control"]),
      };
  }
}
