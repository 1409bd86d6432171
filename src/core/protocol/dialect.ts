/**
 * A dialect: the ways in which an engine differs from other engines of its protocol, as one value of plain data. The
 * codecs read the fields of a dialect, and never its name (docs/engines.md; dialects.ts has the table). Pure.
 */
import type { StopReason } from "../inference/event.ts";
import type { Protocol, ReasoningEffort } from "../inference/request.ts";
import type { SamplingField } from "./engine-fields.ts";
import type { ReportedValues } from "./report.ts";

export interface Dialect {
  /**
   * Marks the opaque values (`carries`) that engines of this dialect made, so that they are sent back only to such
   * engines.
   */
  mark: string;
  /** The fields of a chat message that hold reasoning. */
  reasoning: {
    /**
     * The fields of a message in which the engine gets reasoning that a client sends back. Empty: the reasoning is left
     * out.
     */
    out: readonly ReasoningField[];
    /** The fields of an answer in which reasoning may be; the first with a text is read. */
    in: readonly ReasoningField[];
  };
  /**
   * Whether the engine takes reasoning back as plain text and does not sign its own. Such an engine gets:
   * - over Messages, reasoning without a signature, which signing engines refuse;
   * - over Responses, the text of the reasoning in place of an encrypted proof, which the engine could not read.
   */
  unsignedThoughts: boolean;
  /** The field of a chat completion request that limits the output tokens. */
  cap: "max_tokens" | "max_completion_tokens";
  /** The smallest cap on output tokens that the engine takes, by protocol. */
  cap_min: Readonly<Partial<Record<Protocol, number>>>;
  /** The engine's value for each level of reasoning effort; null for a level that the engine does not have. */
  effort: Readonly<Record<ReasoningEffort, string | null>>;
  /** Over Responses: whether the text of reasoning comes only if a summary is asked for. */
  summarizes: boolean;
  /** The meanings of the engine's words for the end of an answer. Words that are not here are unknown. */
  finishReasons: Readonly<Partial<Record<string, FinishReason>>>;
  /**
   * Opaque fields of answers that are passed to the client, and sent back to the engine with the next request
   * (carried.ts).
   */
  carries: readonly CarriedField[];
  /**
   * The fields that the engine refuses and that are therefore left out of its requests, by their paths.
   * `cache_control.ttl` is left out at any depth of the body.
   */
  strips: readonly StrippedField[];
  bounds: EngineBounds;
  /**
   * How a chat message carries several texts: each as a part of a list (`listed`), or joined into one string
   * (`joined`).
   */
  severalTexts: "listed" | "joined";
  /** Whether the engine's chat completions know `original`, a detail of images above `high`. */
  originalImages: boolean;
  /** How tools' schemas are sent. `mended`: a schema that is not an object with `properties` is turned into one. */
  schemas: "mended" | "as they come";
  /**
   * How the engine is made to call a certain tool: `name` sends all tools and the tool's name, `alone` only that tool
   * with `required`.
   */
  namedTool: "name" | "alone";
  /**
   * Over Messages: whether the engine accepts a turn whose tool calls come before its text. If not, the text is moved
   * to the front.
   */
  callBeforeText: "kept" | "text first";
  /**
   * Over Messages: whether the engine has all of the protocol, and accepts a thinking block only if everything before
   * it is unchanged. Such an engine gets the conversation of a Messages caller as it was written, and the betas that
   * the caller names.
   */
  wholeMessages: boolean;
  usage: UsageRow;
  refusals: Refusals;
  /**
   * Whether the engine stops generating when its client disconnects: for an answer that is streamed, and for one that
   * is not (`whole`).
   */
  stopsForLeaver: { streamed: boolean; whole: boolean };
  /**
   * The names of the engine's metrics for waiting requests, for the share of its cache in use, and for the tokens
   * generated.
   */
  load: { waiting: readonly string[]; cache: readonly string[]; generated: readonly string[] };
  /**
   * The features of the engine's text completions, which have a prompt and no messages. `infill`: a request with a
   * suffix is sent to another path, in another form.
   */
  completions: { suffix: "passed" | "infill" | "none"; echo: boolean; logprobs: boolean };
  /** The sampling fields beyond the contract that the engine's chat completions accept. */
  sampling: readonly SamplingField[];
  signs: Signs;
}

/** The signs by which an engine's dialect is recognised before it has answered a request. */
export interface Signs {
  /** Values of `owned_by` in the engine's list of models. */
  owners: readonly string[];
  /** The engine's host names, whole or as the end of a longer name. */
  hosts: readonly string[];
  /** A page that only this engine has: its path from the root of the host, and the form of its JSON. */
  page: { path: string; form: RegExp } | null;
}

export const reasoningFields = ["reasoning_content", "reasoning"] as const;
export type ReasoningField = (typeof reasoningFields)[number];

/**
 * `failed`: the generation broke off. `unfinished`: the engine's word means that the answer has not ended, as if the
 * field were null.
 */
export type FinishReason = StopReason | "failed" | "unfinished";

/**
 * A field that holds an opaque value. `call`: a string on a tool call. `message`: a list on the message or the delta,
 * whose pieces are joined.
 */
export interface CarriedField {
  kind: "call" | "message";
  path: readonly string[];
}

/** The fields that a dialect may strip from requests. `thinking.empty` stands for thinking blocks without a text. */
export const strippedFields = ["cache_control", "cache_control.ttl", "output_config.effort", "thinking.empty"] as const;
export type StrippedField = (typeof strippedFields)[number];

/** The limits of an engine on the tools, names and stop texts of a request. Infinity: no limit is known. */
export interface EngineBounds {
  tools_max: number;
  name_characters_max: number;
  /** Matches the whole name of a tool. */
  nameForm: RegExp;
  stops_max: number;
}

/** The path of a field within an object. A number is an index in a list. */
export type FieldPath = readonly (string | number)[];

/** The places of the token counts in an answer or a chunk. */
export interface UsageRow {
  /** The paths of the usage object. The first that exists is read. */
  objects: readonly FieldPath[];
  /** Fields outside the usage object that have counts of their own. */
  beside: readonly string[];
  chat: CountPlaces;
  responses: CountPlaces;
  /** Whether the prompt's count includes tokens that were read from a cache, or written to it. */
  promptIncludesCached: boolean;
}

/**
 * For each count, the places where it may be. The first place with a value is read. A place is a list of paths whose
 * values are added up; a path that begins with `usage` begins at the usage object.
 */
export type CountPlaces = Readonly<Record<keyof ReportedValues, readonly (readonly FieldPath[])[]>>;

/** Patterns that recognise an engine's error messages, grouped by what the messages mean. */
export interface Refusals {
  /** The message says that the input is longer than the context. */
  tooLong: readonly RegExp[];
  /**
   * Patterns whose first group is the input's token count in a message of `tooLong`. Lower bounds ("at least") don't
   * match.
   */
  inputTokens: readonly RegExp[];
  /** Patterns of a lower bound of the input's token count, from an engine that stops counting at its limit. */
  inputTokensAtLeast: readonly RegExp[];
  /** Patterns of the context's length in a message of `tooLong`. */
  contextTokens: readonly RegExp[];
  /**
   * The message says that the model failed to write the required output, such as a tool call; another attempt may
   * succeed. Matched with the error's code and message.
   */
  failed: readonly RegExp[];
  /** The message says that the engine cannot enforce a schema or a grammar of the request. */
  format: readonly RegExp[];
  /** The message of a 503 from a healthy engine whose queue is full. */
  full: readonly RegExp[];
  /** The message of a refusal whose cause the operator has to correct, whatever the refusal's status. */
  operators: readonly RegExp[];
  /** The type and message of errors that mean another status than the engine's own. */
  otherwise: readonly { status: number; words: RegExp; means: number }[];
  /** The message of a 500 from an engine that could not read a field of the request. */
  unread: readonly { words: RegExp; param: string }[];
  /**
   * The subjects of refusals. The client's error names the `thing` of the first entry whose `words` match the engine's
   * message.
   */
  things: readonly { words: RegExp; thing: string }[];
  /** Sentences that clients may read, with holes for numbers, paths of fields and the model (engine-sentence.ts). */
  sentences: readonly string[];
}
