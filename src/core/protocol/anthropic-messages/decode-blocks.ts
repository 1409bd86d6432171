/**
 * Turns the content blocks of a request into the protocol-independent parts of an `InferenceRequest`, and notes the
 * capabilities that each needs, with its path.
 */
import { Needs } from "../../inference/needs.ts";
import type {
  AssistantPart,
  ImagePart,
  InputPart,
  Native,
  NativeNeed,
  TextPart,
  ToolCallPart,
} from "../../inference/request.ts";
import { compact } from "../json.ts";
import type {
  AssistantContentBlock,
  DocumentBlockParam,
  ImageBlockParam,
  SearchResultBlockParam,
  TextBlockParam,
  ToolResultContent,
  UserContentBlock,
} from "./contract.ts";
import { imageKindOf } from "./media.ts";
import { withNative } from "./native.ts";
import { signatureOf } from "./signature.ts";

/**
 * The capabilities that a request needs, and the features that only engines of Messages have: for each, the first field
 * that asks for it.
 */
export class MessagesNeeds extends Needs {
  readonly native: NativeNeed[] = [];

  addNative(feature: string, param: string): void {
    if (this.native.some((need) => need.feature === feature)) return;
    this.native.push({ protocol: "anthropic-messages", feature, param });
  }
}

function textPart(block: TextBlockParam): TextPart {
  return withNative<TextPart>(
    { kind: "text", text: block.text },
    block,
    ["type", "text"],
    ["cache_control", "citations"],
  );
}

export function textParts(content: string | readonly TextBlockParam[]): TextPart[] {
  return typeof content === "string" ? [{ kind: "text", text: content }] : content.map(textPart);
}

/** Makes a field's path. Called only when the path is needed: most parts are texts, which need none. */
export type MakePath = () => string;

export function addInput(
  parts: InputPart[],
  block: Exclude<UserContentBlock, { type: "tool_result" }> | ToolResultContent,
  path: MakePath,
  needs: MessagesNeeds,
): void {
  switch (block.type) {
    case "text":
      parts.push(textPart(block));
      return;
    case "image":
      parts.push(imagePart(block, path, needs));
      return;
    case "document":
      parts.push(...documentParts(block, path, needs));
      return;
    case "search_result":
      parts.push(searchResultPart(block, path, needs));
      return;
    case "tool_reference":
      parts.push(toolReferencePart(block.tool_name));
  }
}

/** A tool that a tool search found, as text for models that do not know such blocks. It is one of the request's tools. */
function toolReferencePart(tool_name: string): TextPart {
  const wire = { type: "tool_reference", tool_name };
  const native: Native = { protocol: "anthropic-messages", wire, isForWhole: true };
  return { kind: "text", text: `The tool ${tool_name} is available.`, native };
}

export function addInputs(
  parts: InputPart[],
  blocks: readonly ToolResultContent[],
  path: MakePath,
  needs: MessagesNeeds,
): void {
  for (let at = 0; at < blocks.length; at++) addInput(parts, blocks[at]!, () => `${path()}[${at}]`, needs);
}

function imagePart(block: ImageBlockParam, path: MakePath, needs: MessagesNeeds): InputPart {
  needs.add("image", path);
  const { source } = block;
  const url =
    source.type === "url" ? source.url : `data:${imageKindOf(source.data) ?? source.media_type};base64,${source.data}`;
  return withNative<ImagePart>({ kind: "image", url }, block, ["type", "source"], ["cache_control", "transformations"]);
}

function documentParts(block: DocumentBlockParam, path: MakePath, needs: MessagesNeeds): InputPart[] {
  const { source } = block;
  if (block.citations?.enabled) needs.addNative("citations", `${path()}.citations`);
  // The parts of a document share one wire object, so that engines that speak Messages get the block as it was written.
  const whole = withNative({}, block, ["type", "title", "context"], ["source", "cache_control", "citations"]);
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
  const inner: InputPart[] = [];
  addInputs(inner, content, () => `${path()}.source.content`, needs);
  const headed: InputPart[] = head === "" && inner.length > 0 ? inner : [{ kind: "text", text: head }, ...inner];
  return headed.map((part) => ({ ...part, ...whole }));
}

/** The lines before a document's text; empty if it has neither a title nor a context. */
function documentHead({ title, context }: DocumentBlockParam): string {
  const lines = [...(title ? [`Document: ${title}`] : []), ...(context ? [`Context: ${context}`] : [])];
  return lines.length === 0 ? "" : `${lines.join("\n")}\n\n`;
}

function searchResultPart(block: SearchResultBlockParam, path: MakePath, needs: MessagesNeeds): InputPart {
  if (block.citations?.enabled) needs.addNative("citations", `${path()}.citations`);
  const { title, source, content } = block;
  const found = content.map(({ text }) => text).join("\n");
  const part: TextPart = { kind: "text", text: `Search result: ${title}\nSource: ${source}\n\n${found}` };
  return withNative(part, block, ["type", "title", "content"], ["source", "cache_control", "citations"]);
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
    case "tool_use": {
      const input = block.input ?? {};
      return withNative<ToolCallPart>(
        { kind: "tool-call", callId: block.id, toolName: block.name, arguments: JSON.stringify(input), input },
        block,
        ["type", "id", "name", "input"],
        ["cache_control"],
      );
    }
  }
}
