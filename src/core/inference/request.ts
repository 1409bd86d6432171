/**
 * The centre (the protocol-independent form of requests and answers), part one: a caller's request to a model.
 *
 * The request has as much structure as the most structured protocol, so that no translation loses anything. Codecs
 * translate to this form and from it, and no codec knows another. This file has types and lists of their values, and
 * imports nothing.
 */

/**
 * An ability of a model. A request that needs an ability which the model lacks is refused with an error that names the
 * ability, and never silently degraded.
 */
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

export type Protocol = "openai-chat" | "anthropic-messages" | "openai-responses";

/**
 * An object of a protocol (a wire object), as its author wrote it, with properties for which the centre has no fields
 * (`cache_control`, citations, a document's title). A receiver that speaks the same protocol gets this object; any
 * other receiver gets an object made from the centre. Parts that share one `Native` are one wire object.
 */
export interface Native {
  protocol: Protocol;
  wire: Readonly<Record<string, unknown>>;
  /** Set if only engines that support the whole protocol accept this object. */
  isForWhole?: true;
}

/**
 * A feature that only engines of one protocol have. If the request would go to another engine, it is refused with an
 * error that names the feature.
 */
export interface NativeNeed {
  protocol: Protocol;
  /** The feature's name, such as "citations". */
  feature: string;
  /** The path of the field that asks for the feature. */
  param: string;
}

/**
 * A conversation as its author wrote it. An engine that supports the whole of the author's protocol gets this
 * conversation in place of `turns`, if `turns` is still the list that was decoded from it.
 */
export interface Written {
  readonly protocol: Protocol;
  readonly turns: readonly Turn[];
  /** The fields of the body that make up the conversation. */
  wire: Readonly<Record<string, unknown>>;
}

export interface InferenceRequest {
  /** Public model id, `<vendor>/<model_name>`. */
  model: string;
  /** Whether the caller wants a stream. Whether the engine streams is decided separately. */
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
  /** The path of the field of `stop`, if the caller's protocol has another name for the field. */
  stopParam?: string;
  format?: OutputFormat;
  reasoning?: Reasoning;
  /** Set if the caller asked for log probabilities, with `top` alternatives for each token (0 to 20). */
  logprobs?: { top: number };
  /** Identifies requests with a common prefix: they are sent to one engine to share its prefix cache. */
  cacheKey?: string;
  /** Fields that the catalog allows for this model (`extra_params`), passed on unchanged. */
  extra: Record<string, unknown>;
  needs: Need[];
  nativeNeeds?: NativeNeed[];
  /** Further top-level fields, which only engines that speak the caller's protocol get. */
  native?: Native;
  written?: Written;
  /** Set if the last turn is the beginning of the answer, which the engine continues. */
  continues?: boolean;
  /** Set if the conversation is to be summarized. Its last turn asks for the summary (compaction.ts). */
  compaction?: Compaction;
  /**
   * Set if the request and its answer are passed on in the wire form of their operation, such as embeddings. The
   * conversation is then empty.
   */
  passed?: Passed;
}

export interface Passed {
  /** The number of inputs. Each may use the model's whole context. */
  readonly inputs: number;
  /** Whether the answer is text, and not numbers such as vectors or scores. */
  readonly makesText: boolean;
  /** An upper estimate of the tokens of the largest input. */
  readonly largestTokens: number;
  /** The number of tokens of all inputs, if the caller sent token ids. */
  readonly exactTokens?: number;
  /** The number of searches, which are charged by the model's price of a search. */
  readonly searches?: number;
  /** The texts of the inputs, for a tokenizer to count; none once the input was released. */
  texts(): readonly string[];
  /** Frees the memory of the input, which will not be sent again. */
  release(): void;
}

interface Compaction {
  /** The summary of an earlier compaction, which is never left out. */
  readonly summary: Turn | null;
  /** The number of turns that were left out; `notice` is the turn that stands for them, or null. */
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

/** The efforts of reasoning, from the least to the most. */
export const reasoningEfforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
export type ReasoningEffort = (typeof reasoningEfforts)[number];

/** Hints about reasoning, which a model that does not reason does not get (`withoutLostHints`). */
export interface Reasoning {
  effort?: ReasoningEffort;
  /**
   * Set to the same value as `effort` if the effort must not be lowered: the request is refused for an engine that does
   * not have this effort.
   */
  exactEffort?: ReasoningEffort;
  /** `thinking.budget_tokens` of Messages. */
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
export interface ToolTurn {
  role: "tool";
  callId: string;
  parts: InputPart[];
  failed?: boolean;
  /** The fields of the wire object other than the result itself. */
  native?: Native;
}

export interface TextPart {
  kind: "text";
  text: string;
  native?: Native;
}
/** `url`: `https:` or `data:`. `detail`: the value that the caller sent. */
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
interface AudioPart {
  kind: "audio";
  data: string;
  format: string;
}
export type InputPart = TextPart | ImagePart | FilePart | AudioPart;

interface RefusalPart {
  kind: "refusal";
  text: string;
}
export interface ReasoningPart {
  kind: "reasoning";
  text: string;
  /** The engine's signature of the text: opaque, and passed on byte for byte. */
  signature?: string;
  /** Opaque reasoning without a text (redacted or encrypted). */
  encrypted?: string;
}
export interface ToolCallPart {
  kind: "tool-call";
  callId: string;
  toolName: string;
  /** JSON text, exactly as it was written. */
  arguments: string;
  /** `arguments` as an object, if the caller sent one. */
  input?: Readonly<Record<string, unknown>>;
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
  /**
   * Set if the model is to see the tool only once a tool search has found it. Most engines get the tool like any other.
   */
  isDeferred?: boolean;
  native?: Native;
}

export type ToolChoice =
  | { kind: "none" }
  | { kind: "auto" }
  | { kind: "required" }
  | { kind: "tool"; name: string }
  /** The model may call only these tools, and may or must call one, as `mode` says. A hard constraint. */
  | { kind: "allowed"; mode: "auto" | "required"; names: string[] };

/**
 * Empties the lists of turns and tools in place, because several objects refer to them until the answer's end
 * (docs/design/service.md, Memory in flight).
 */
export function emptyRequest({ turns, tools, passed, written }: InferenceRequest): void {
  passed?.release();
  if (written) written.wire = {};
  turns.length = 0;
  tools.length = 0;
}

/** Whether the request was emptied. A request that was not emptied always has turns. */
export function isEmptied({ turns }: InferenceRequest): boolean {
  return turns.length === 0;
}

/**
 * The request without the hints that a model cannot use (docs/design/service.md, Capabilities). `thinking`, `reasoning`
 * and `output_config.effort` are hints, because agents always send them; Chat's `reasoning_effort` is not a hint, and
 * needs the capability. Parallel calls are a permission, which does not matter to a model that cannot make calls.
 */
export function withoutLostHints(
  request: InferenceRequest,
  { capabilities }: { capabilities: ReadonlySet<Capability> },
): InferenceRequest {
  const visible = { ...request };
  if (!capabilities.has("reasoning")) delete visible.reasoning;
  if (visible.parallelToolCalls === true && !capabilities.has("parallel_tools")) delete visible.parallelToolCalls;
  return visible;
}
