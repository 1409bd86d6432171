/**
 * Writes a chat completion request for an engine, with the field names of its dialect, without nulls, and without
 * fields that only OpenAI's own service reads. Equal requests have equal bytes. The conversation becomes messages. A
 * tool's results come directly after the calls. Images and files of a result, which `role: tool` cannot hold, go into a
 * user message that follows.
 */

import type { Fault } from "../../inference/fault.ts";
import type {
  AssistantTurn,
  InferenceRequest,
  InputPart,
  OutputFormat,
  ReasoningPart,
  TextPart,
  Tool,
  ToolCallPart,
  ToolTurn,
  Turn,
} from "../../inference/request.ts";
import { inEngineOrder } from "../../inference/turns.ts";
import type { UpstreamAsk } from "../codec.ts";
import type { Dialect } from "../dialect.ts";
import { dialects } from "../dialects.ts";
import { allowedTools, beyondBounds, effortOf, foreignNeed } from "../engine-options.ts";
import { mended } from "../tool-schema.ts";
import { CarriedBack } from "./carried-back.ts";

/** Writes the conversation as messages. `model`: the model's public id. */
function encodeTurns(turns: Turn[], ask: UpstreamAsk, model: string): Record<string, unknown>[] {
  const messages: Record<string, unknown>[] = [];
  const back = new CarriedBack(model, ask.dialect ?? dialects.generic, ask.lost);
  let attached: InputPart[] = [];
  for (const turn of inEngineOrder(turns, ask.instructionsInside)) {
    if (turn.role === "tool") {
      messages.push(encodeResult(turn, back.dialect));
      attached.push(...attachments(turn));
      continue;
    }
    if (attached.length > 0 && turn.role !== "user")
      messages.push({ role: "user", content: encodeInput(attached, back.dialect) });
    const isJoined = attached.length > 0 && turn.role === "user";
    messages.push(encodeTurn(isJoined ? { ...turn, parts: [...attached, ...turn.parts] } : turn, back));
    attached = [];
  }
  if (attached.length > 0) messages.push({ role: "user", content: encodeInput(attached, back.dialect) });
  return messages;
}

function encodeTurn(turn: Exclude<Turn, ToolTurn>, back: CarriedBack): Record<string, unknown> {
  switch (turn.role) {
    case "system":
    case "developer":
      return { role: "system", content: encodeInput(turn.parts, back.dialect), name: turn.name };
    case "user":
      return { role: "user", content: encodeInput(turn.parts, back.dialect), name: turn.name };
    case "assistant":
      return encodeAssistant(turn, back);
  }
}

function encodeResult({ callId, parts, failed }: ToolTurn, dialect: Dialect): Record<string, unknown> {
  const text = parts.filter((part) => part.kind === "text");
  if (text.length < parts.length && text.length === 0)
    text.push({ kind: "text", text: "The result is attached to the next message." });
  const [first, ...others] = text;
  const texts: TextPart[] = failed ? [{ kind: "text", text: `Error: ${first?.text ?? ""}` }, ...others] : text;
  return { role: "tool", tool_call_id: callId, content: texts.length === 0 ? "" : encodeInput(texts, dialect) };
}

function attachments({ callId, parts }: ToolTurn): InputPart[] {
  const others = parts.filter((part) => part.kind !== "text");
  return others.length === 0
    ? []
    : [{ kind: "text", text: `Attached to the result of the tool call ${callId}:` }, ...others];
}

function encodeAssistant(turn: AssistantTurn, back: CarriedBack): Record<string, unknown> {
  const { dialect, lost } = back;
  const [first] = turn.parts;
  if (first?.kind === "text" && turn.parts.length === 1)
    return { role: "assistant", content: first.text, name: turn.name };
  const text: TextPart[] = [];
  const calls: ToolCallPart[] = [];
  const thoughts: ReasoningPart[] = [];
  let refusal: string | undefined;
  for (const part of turn.parts) {
    if (part.kind === "text") {
      if (calls.length > 0) lost?.("order");
      text.push(part);
    } else if (part.kind === "tool-call") calls.push(part);
    else if (part.kind === "reasoning") thoughts.push(part);
    else refusal = (refusal ?? "") + part.text;
  }
  const { out } = dialect.reasoning;
  const reasoning = thoughts.map((part) => part.text).join("");
  const isSealed = thoughts.some(({ encrypted }) => encrypted !== undefined);
  if (isSealed || (reasoning !== "" && out.length === 0)) lost?.("thoughts");
  const fields = reasoning === "" ? [] : out.map((field) => [field, reasoning]);
  const message = {
    role: "assistant",
    content: text.length > 0 ? encodeInput(text, dialect) : calls.length > 0 ? null : "",
    name: turn.name,
    refusal,
    ...Object.fromEntries(fields),
    tool_calls:
      calls.length > 0
        ? calls.map((call) => ({
            id: call.callId,
            type: "function",
            // Engines parse the arguments as JSON. llama.cpp answers empty arguments with status 500.
            function: { name: call.toolName, arguments: call.arguments.trim() === "" ? "{}" : call.arguments },
          }))
        : undefined,
  };
  return back.in(message, thoughts, calls);
}

/**
 * Writes a single text as a string, which every engine reads, and several parts as a list. The dialect decides whether
 * several texts are a list or one joined string.
 */
function encodeInput(parts: readonly InputPart[], dialect: Dialect): unknown {
  const texts = parts.flatMap((part) => (part.kind === "text" ? [part.text] : []));
  const isJoined = texts.length === 1 || dialect.severalTexts === "joined";
  return isJoined && texts.length === parts.length
    ? texts.join("\n\n")
    : parts.map((part) => encodePart(part, dialect));
}

function encodePart(part: InputPart, { originalImages }: Dialect): unknown {
  switch (part.kind) {
    case "text":
      return { type: "text", text: part.text };
    case "image": {
      const detail = part.detail === "original" && !originalImages ? "high" : part.detail;
      return { type: "image_url", image_url: { url: part.url, detail } };
    }
    case "audio":
      return { type: "input_audio", input_audio: { data: part.data, format: part.format } };
    case "file":
      return { type: "file", file: { file_data: part.data, filename: part.filename } };
  }
}

export function unsupportedByChat(request: InferenceRequest, dialect: Dialect = dialects.generic): Fault | null {
  return foreignNeed(request, "openai-chat") ?? beyondBounds(request, dialect);
}

export function encodeRequest(request: InferenceRequest, ask: UpstreamAsk): Record<string, unknown> {
  const { dialect = dialects.generic } = ask;
  const refusal = unsupportedByChat(request, dialect);
  if (refusal) throw refusal;
  const { sampling } = request;
  const { tools, choice, named, parallel } = allowedTools(request, dialect);
  return {
    model: ask.model,
    messages: encodeTurns(request.turns, ask, request.model),
    stream: ask.stream,
    // Usage is always requested, because the service meters by it.
    stream_options: ask.stream ? { include_usage: true } : undefined,
    [dialect.cap]: request.outputTokens_max,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
    seed: sampling.seed,
    logit_bias: sampling.logitBias,
    stop: request.stop.length > 0 ? request.stop : undefined,
    tools: tools.length > 0 ? tools.map((tool) => encodeTool(tool, dialect)) : undefined,
    tool_choice: named ? { type: "function", function: { name: named } } : tools.length > 0 ? choice : undefined,
    parallel_tool_calls: tools.length > 0 ? parallel : undefined,
    response_format: request.format && encodeFormat(request.format),
    reasoning_effort: request.reasoning && effortOf(request.reasoning, dialect),
    logprobs: request.logprobs ? true : undefined,
    top_logprobs: request.logprobs?.top || undefined,
    // vLLM and SGLang have these names for the two fields. vLLM refuses one of them without the other.
    continue_final_message: request.continues || undefined,
    add_generation_prompt: request.continues ? false : undefined,
    ...request.extra,
  };
}

function encodeTool({ name, description, parameters: given, strict }: Tool, { schemas }: Dialect): unknown {
  const parameters = given && schemas === "mended" ? mended(given) : given;
  return { type: "function", function: { name, description, parameters, strict } };
}

function encodeFormat(format: OutputFormat): unknown {
  if (format.kind === "json_object") return { type: "json_object" };
  const { name, schema, strict, description } = format;
  return { type: "json_schema", json_schema: { name, description, schema, strict } };
}
