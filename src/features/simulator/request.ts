/**
 * Reads a chat completion request as engines do: fields that the simulator uses are checked, and all others are
 * ignored.
 */
import { SimulatorRefusal } from "./refusal.ts";

export interface ChatRequest {
  model: string;
  messages: Message[];
  stream: boolean;
  includeUsage: boolean;
  /** Whether every chunk has the usage so far (vLLM's `continuous_usage_stats`). */
  runningUsage: boolean;
  tokens_max: number;
  stops: string[];
  /** The number of choices to generate (`n`). */
  choices: number;
  /** The number of alternatives for each token; null if no log probabilities are requested. */
  topLogprobs: number | null;
  effort: string | null;
  tools: Tool[];
  toolChoice: ToolChoice;
  parallelCalls: boolean;
  /** Whether the last message is the beginning of the answer, which the answer continues. */
  continues: boolean;
  format: { kind: "text" } | { kind: "json" } | { kind: "schema"; schema: unknown };
}

export interface Message {
  role: string;
  /** All text parts of the message, joined by line breaks. */
  text: string;
  images: number;
  files: number;
  toolCallId: string | null;
  calls: { id: string; name: string; arguments: string }[];
}

export interface Tool {
  name: string;
  parameters: unknown;
}

export interface ToolChoice {
  mode: "none" | "auto" | "required";
  /** The names of the tools that may be called; null: all tools. */
  only: string[] | null;
}

export type Json = Record<string, unknown>;

/**
 * Reads the body. Throws a SimulatorRefusal (400) that names the first invalid field. A field that is null counts as
 * absent.
 */
export function readRequest(body: unknown): ChatRequest {
  if (!isObject(body)) throw wrong("", "the body must be a JSON object");
  const tools = list(body, "tools").map(readTool);
  const options = object(body, "stream_options");
  const stop = body.stop ?? [];
  return {
    model: text(body, "model"),
    messages: readMessages(body.messages),
    stream: flag(body, "stream", false),
    includeUsage: flag(options, "include_usage", false),
    runningUsage: flag(options, "continuous_usage_stats", false),
    tokens_max: whole(body, "max_completion_tokens", 1) ?? whole(body, "max_tokens", 1) ?? Number.POSITIVE_INFINITY,
    stops: typeof stop === "string" ? [stop] : strings(stop, "stop"),
    choices: whole(body, "n", 1, 128) ?? 1,
    topLogprobs: flag(body, "logprobs", false) ? (whole(body, "top_logprobs", 0, 20) ?? 0) : null,
    effort: body.reasoning_effort == null ? null : text(body, "reasoning_effort"),
    tools,
    toolChoice: readToolChoice(body.tool_choice, tools),
    parallelCalls: flag(body, "parallel_tool_calls", true),
    continues: flag(body, "continue_final_message", false),
    format: readFormat(object(body, "response_format")),
  };
}

function readMessages(value: unknown): Message[] {
  if (!Array.isArray(value) || value.length === 0) throw wrong("messages", "must be an array of one or more messages");
  return value.map((message, index) => readMessage(message, `messages[${index}]`));
}

const roles = ["system", "developer", "user", "assistant", "tool", "function"];

function readMessage(value: unknown, path: string): Message {
  if (!isObject(value)) throw wrong(path, "must be an object");
  if (!roles.includes(String(value.role))) throw wrong(`${path}.role`, `must be one of ${roles.join(", ")}`);
  const message: Message = {
    role: String(value.role),
    text: "",
    images: 0,
    files: 0,
    toolCallId: typeof value.tool_call_id === "string" ? value.tool_call_id : null,
    calls: list(value, "tool_calls").map((call, index) => readCall(call, `${path}.tool_calls[${index}]`)),
  };
  const content = value.content ?? "";
  if (typeof content === "string") return { ...message, text: content };
  if (!Array.isArray(content)) throw wrong(`${path}.content`, "must be a string or an array of parts");
  const texts: string[] = [];
  for (const [index, part] of content.entries()) {
    const place = `${path}.content[${index}]`;
    if (!isObject(part)) throw wrong(place, "must be an object");
    if (part.type === "text" || part.type === "refusal") texts.push(text(part, part.type, `${place}.`));
    else if (part.type === "image_url") message.images += 1;
    else if (part.type === "file" || part.type === "input_audio") message.files += 1;
    else throw wrong(`${place}.type`, "must be text, refusal, image_url, file or input_audio");
  }
  return { ...message, text: texts.join("\n") };
}

function readCall(value: unknown, path: string): Message["calls"][number] {
  if (!isObject(value) || !isObject(value.function)) throw wrong(path, "must be a tool call with a function");
  return {
    id: typeof value.id === "string" ? value.id : "",
    name: text(value.function, "name", `${path}.function.`),
    arguments: typeof value.function.arguments === "string" ? value.function.arguments : "",
  };
}

function readTool(value: unknown, index: number): Tool {
  const path = `tools[${index}]`;
  if (!isObject(value) || value.type !== "function") throw wrong(`${path}.type`, "must be function");
  if (!isObject(value.function)) throw wrong(`${path}.function`, "must be an object");
  return { name: text(value.function, "name", `${path}.function.`), parameters: value.function.parameters ?? {} };
}

function readToolChoice(value: unknown, tools: Tool[]): ToolChoice {
  if (value == null) return { mode: "auto", only: null };
  if (value === "none" || value === "auto" || value === "required") return { mode: value, only: null };
  if (isObject(value) && value.type === "function" && isObject(value.function)) {
    return { mode: "required", only: [toolNamed(value.function.name, tools)] };
  }
  if (isObject(value) && value.type === "allowed_tools" && isObject(value.allowed_tools)) {
    const allowed = list(value.allowed_tools, "tools").map((tool) =>
      toolNamed(isObject(tool) && isObject(tool.function) ? tool.function.name : undefined, tools),
    );
    return { mode: value.allowed_tools.mode === "required" ? "required" : "auto", only: allowed };
  }
  throw wrong("tool_choice", "must be none, auto, required, a function or allowed_tools");
}

function toolNamed(name: unknown, tools: Tool[]): string {
  if (typeof name === "string" && tools.some((tool) => tool.name === name)) return name;
  throw wrong("tool_choice", "names a tool that is not in tools");
}

function readFormat(value: Json): ChatRequest["format"] {
  if (value.type === undefined || value.type === "text") return { kind: "text" };
  if (value.type === "json_object") return { kind: "json" };
  if (value.type !== "json_schema") throw wrong("response_format.type", "must be text, json_object or json_schema");
  if (!isObject(value.json_schema)) throw wrong("response_format.json_schema", "must be an object");
  return { kind: "schema", schema: value.json_schema.schema ?? {} };
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(from: Json, name: string, path = ""): string {
  const value = from[name];
  if (typeof value !== "string") throw wrong(path + name, "must be a string");
  return value;
}

function flag(from: Json, name: string, otherwise: boolean): boolean {
  const value = from[name] ?? otherwise;
  if (typeof value !== "boolean") throw wrong(name, "must be true or false");
  return value;
}

function whole(from: Json, name: string, min: number, max = Number.MAX_SAFE_INTEGER): number | null {
  const value = from[name] ?? null;
  if (value === null) return null;
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
  throw wrong(name, `must be an integer from ${min} to ${max}`);
}

function object(from: Json, name: string): Json {
  const value = from[name] ?? {};
  if (!isObject(value)) throw wrong(name, "must be an object");
  return value;
}

function list(from: Json, name: string): unknown[] {
  const value = from[name] ?? [];
  if (!Array.isArray(value)) throw wrong(name, "must be an array");
  return value;
}

function strings(value: unknown, name: string): string[] {
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
  throw wrong(name, "must be a string or an array of strings");
}

function wrong(param: string, what: string): SimulatorRefusal {
  return new SimulatorRefusal(
    400,
    `Simulator: ${param === "" ? "" : `${param} `}${what}.`,
    "invalid_value",
    param || null,
  );
}
