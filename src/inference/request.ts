/**
 * THE CENTRE, part one: what a caller asks of a model, in no protocol's words.
 *
 * It is as structured as the most structured protocol, so that nothing is lost on the way through: three codecs
 * translate to it and from it, and no codec knows another. Pure types; this room imports nothing.
 */

/** What a model can do; a request that needs more is refused by name, never silently degraded. */
export type Capability =
  | "tools"
  | "parallel_tools"
  | "vision"
  | "reasoning"
  | "structured_output"
  | "logprobs"
  | "files"
  | "audio_input";

/** A capability that the request uses, with the wire path of the field that uses it (`messages[2].content[0]`). */
export interface Need {
  capability: Capability;
  param: string;
}

/** The wire protocols that are spoken, on either side. New ones are appended: protocol/fields.ts has a column for each. */
export const protocols = ["openai-chat", "anthropic-messages", "openai-responses"] as const;
export type Protocol = (typeof protocols)[number];

/**
 * A wire object that says more than the centre models (cache marks, citations, a document's title), as its author wrote
 * it. Whoever speaks the same protocol on the other side gets it in place of what the centre says; anybody else gets what
 * the centre says. Parts that share one `Native` are one wire object.
 */
export interface Native {
  protocol: Protocol;
  wire: Readonly<Record<string, unknown>>;
}

/** Something that only engines of one protocol can do; asked of another it is refused by name. */
export interface NativeNeed {
  protocol: Protocol;
  /** In words: "citations". */
  feature: string;
  /** Wire path of the field that asks for it. */
  param: string;
}

export interface InferenceRequest {
  /** Public model id, `<vendor>/<model_name>`. */
  model: string;
  /** Whether the caller wants events; never decides how the upstream is asked. */
  stream: boolean;
  turns: Turn[];
  tools: Tool[];
  toolChoice?: ToolChoice;
  /** `false` forbids several calls in one turn; absent leaves it to the engine. */
  parallelToolCalls?: boolean;
  /** The caller's cap on output tokens, reasoning included. */
  outputTokens_max?: number;
  sampling: Sampling;
  stop: string[];
  /** Wire path of the field that `stop` came from, where its name is another. */
  stopParam?: string;
  format?: OutputFormat;
  reasoning?: Reasoning;
  /** Present when the caller asked for log probabilities; `top` alternatives a token (0 to 20). */
  logprobs?: { top: number };
  /** Routing affinity: requests that share a key like to share an engine's prefix cache. */
  cacheKey?: string;
  /** Fields that the catalog allows for this model (`extra_params`), handed on untouched. */
  extra: Record<string, unknown>;
  needs: Need[];
  nativeNeeds?: NativeNeed[];
  /** Top-level fields beside all this. */
  native?: Native;
  /** Set where the conversation is to be told in short; its last turn asks for that (compaction.ts). */
  compaction?: Compaction;
}

export interface Compaction {
  /** The summary of an earlier compaction: it stays, whatever else is left out. */
  readonly summary: Turn | null;
  /** How many of the oldest turns were left out so far, and the turn that says so in their place. */
  leftOutTurns: number;
  notice: Turn | null;
}

export interface Sampling {
  temperature?: number;
  topP?: number;
  topK?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  seed?: number;
  logitBias?: Record<string, number>;
}

export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

/** Hints: a model that does not reason is not told of them (hints.ts). */
export interface Reasoning {
  effort?: ReasoningEffort;
  /** Messages' `thinking.budget_tokens`, where a caller gave one. */
  budgetTokens?: number;
  native?: Native;
}

export type OutputFormat =
  | { kind: "json_object" }
  | { kind: "json_schema"; name: string; schema?: Record<string, unknown>; strict?: boolean; description?: string };

export type Turn = SystemTurn | UserTurn | AssistantTurn | ToolTurn;

/** Instructions. `developer` is the newer name; engines that know only `system` get that. */
export interface SystemTurn {
  role: "system" | "developer";
  parts: TextPart[];
  name?: string;
}
export interface UserTurn {
  role: "user";
  parts: InputPart[];
  name?: string;
}
export interface AssistantTurn {
  role: "assistant";
  parts: AssistantPart[];
  name?: string;
}
/** The result of one tool call. */
export interface ToolTurn {
  role: "tool";
  callId: string;
  parts: InputPart[];
  failed?: boolean;
  /** Fields beside the result itself. */
  native?: Native;
}

export interface TextPart {
  kind: "text";
  text: string;
  native?: Native;
}
/** `url` is `https:` or `data:`; `detail` as the caller said it. */
export interface ImagePart {
  kind: "image";
  url: string;
  detail?: string;
  native?: Native;
}
export interface FilePart {
  kind: "file";
  /** `data:` URL or base64, as the caller sent it. */
  data: string;
  filename?: string;
  mediaType?: string;
  native?: Native;
}
export interface AudioPart {
  kind: "audio";
  data: string;
  format: string;
}
export type InputPart = TextPart | ImagePart | FilePart | AudioPart;

export interface RefusalPart {
  kind: "refusal";
  text: string;
}
export interface ReasoningPart {
  kind: "reasoning";
  text: string;
  /** Opaque proof that belongs to the text, handed on byte for byte. */
  signature?: string;
  /** Opaque reasoning without text (redacted or encrypted). */
  encrypted?: string;
}
export interface ToolCallPart {
  kind: "tool-call";
  callId: string;
  toolName: string;
  /** JSON text, exactly as it was written. */
  arguments: string;
  native?: Native;
}
export type AssistantPart = TextPart | RefusalPart | ReasoningPart | ToolCallPart;

/** A tool that the caller runs: a function. Custom tools become one (protocol/custom-tool.ts). */
export interface Tool {
  kind: "function";
  name: string;
  description?: string;
  parameters?: Record<string, unknown>;
  strict?: boolean;
  native?: Native;
}

export type ToolChoice =
  | { kind: "none" }
  | { kind: "auto" }
  | { kind: "required" }
  | { kind: "tool"; name: string }
  /** Only these tools, called as `mode` says. A hard constraint. */
  | { kind: "allowed"; mode: "auto" | "required"; names: string[] };
