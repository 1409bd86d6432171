/**
 * A dialect: the ways in which an engine differs from other engines of its protocol, as one value of plain data. The codecs
 * read its rows and never its name (docs/engines.md; dialects.ts has the table). Pure.
 */
import type { StopReason } from "../inference/event.ts";
import type { ReasoningEffort } from "../inference/request.ts";
import type { SamplingField } from "./engine-fields.ts";

export interface Dialect {
  /** Marks the opaque values of engines of this dialect, so that they are sent back only to such engines. */
  mark: string;
  /** The fields of a chat message that hold reasoning. */
  reasoning: {
    /** The fields in which reasoning that a client sends back is passed on. None: it is left out. */
    out: readonly ReasoningField[];
    /** The fields in which reasoning is looked for in an answer; the first with a text is read. */
    in: readonly ReasoningField[];
  };
  /**
   * Whether the engine reads the text of reasoning and signs none. Such an engine gets, over Messages, reasoning
   * without a signature, which signing engines refuse; and over Responses its text in place of an encrypted proof,
   * which it could not read.
   */
  unsignedThoughts: boolean;
  /** The field for the most output tokens in chat completions. */
  cap: "max_tokens" | "max_completion_tokens";
  /** The word for each level of effort; null for a level that the engine has no word for. */
  effort: Readonly<Record<ReasoningEffort, string | null>>;
  /** The meanings of the engine's words for the end of an answer. Words that are not here are unknown. */
  finishReasons: Readonly<Partial<Record<string, FinishReason>>>;
  /**
   * Opaque fields of answers that are passed to the client, and back to the engine in the next request (carried.ts).
   */
  carries: readonly CarriedField[];
  /** The fields that the engine refuses, and so is not sent, by their paths (`cache_control.ttl`: at any depth). */
  strips: readonly StrippedField[];
  bounds: EngineBounds;
  /** `mended`: schemas of tools that are no objects with `properties` are made into such. */
  schemas: "mended" | "as they come";
  /**
   * How the engine is made to call a certain tool: `name` sends all tools and the tool's name, `alone` only that tool
   * with `required`.
   */
  namedTool: "name" | "alone";
  /** Over Messages: whether a turn may have its calls before its text. If not, the text is moved to the front. */
  callBeforeText: "kept" | "text first";
  usage: UsageRow;
  refusals: Refusals;
  /** Whether the engine stops generating when its client leaves a streamed answer, and one that is not streamed. */
  stopsForLeaver: { streamed: boolean; whole: boolean };
  /** The names of the engine's metrics: requests that wait, the share of its cache that is taken, and the tokens that it made. */
  load: { waiting: readonly string[]; cache: readonly string[]; generated: readonly string[] };
  /** The features of the engine's bare completions. `infill`: a suffix is sent to another path, in another form. */
  completions: { suffix: "passed" | "infill" | "none"; echo: boolean; logprobs: boolean };
  /** The fields of sampling, beyond the contract, that its chat completions take. */
  sampling: readonly SamplingField[];
  signs: Signs;
}

/** The signs by which an engine's dialect is recognised before it has answered a request. */
export interface Signs {
  /** Values of `owned_by` in its list of models. */
  owners: readonly string[];
  /** The engine's host names, whole or as the end of a longer name. */
  hosts: readonly string[];
  /** A page that only this engine has: its path from the root of the host, and the form of its JSON. */
  page: { path: string; form: RegExp } | null;
}

export const reasoningFields = ["reasoning_content", "reasoning"] as const;
export type ReasoningField = (typeof reasoningFields)[number];

/** `failed`: the generation broke off. `unfinished`: no end at all, as if the field were null. */
export type FinishReason = StopReason | "failed" | "unfinished";

/**
 * A field with an opaque value. `call`: a text on a call. `message`: a list on the message or the delta, whose pieces
 * are joined.
 */
export interface CarriedField {
  kind: "call" | "message";
  path: readonly string[];
}

/** `thinking.empty`: blocks of thoughts without a text. */
export const strippedFields = ["cache_control", "cache_control.ttl", "output_config.effort", "thinking.empty"] as const;
export type StrippedField = (typeof strippedFields)[number];

/** The most that an engine accepts in a request. Infinity: no limit is known. */
export interface EngineBounds {
  tools_max: number;
  name_characters_max: number;
  /** Matches the whole name of a tool. */
  nameForm: RegExp;
  stops_max: number;
}

/** The path of a field within an object. A number is an index in a list. */
export type FieldPath = readonly (string | number)[];

/** Where an answer or a chunk has its token counts. */
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
export type CountPlaces = Readonly<
  Record<"prompt" | "cached" | "written" | "output" | "reasoning", readonly (readonly FieldPath[])[]>
>;

/** Patterns of an engine's error messages, by what they mean. */
export interface Refusals {
  /** The input is longer than the context. */
  tooLong: readonly RegExp[];
  /** The input's token count in such a message, in the first group. Lower bounds ("at least") don't match. */
  inputTokens: readonly RegExp[];
  /** A lower bound of that count, from an engine that stops counting at its limit. */
  inputTokensAtLeast: readonly RegExp[];
  /** The context's length in such a message. */
  contextTokens: readonly RegExp[];
  /**
   * The model failed to write what was asked of it; another attempt may succeed. Matched with the error's code and
   * message.
   */
  failed: readonly RegExp[];
  /** The engine cannot enforce a schema or a grammar of the request. */
  format: readonly RegExp[];
  /** A 503 of a healthy engine whose queue is full. */
  full: readonly RegExp[];
  /** A refusal that the operator has to correct, whatever its status. */
  operators: readonly RegExp[];
  /** A 500 about a field of the request that the engine could not read. */
  unread: readonly { words: RegExp; param: string }[];
  /** The subjects of refusals, by words in them. The first match is named to the client. */
  things: readonly { words: RegExp; thing: string }[];
  /** Sentences that clients may read, with holes for numbers, paths of fields and the model (engine-sentence.ts). */
  sentences: readonly string[];
}
