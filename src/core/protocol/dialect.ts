/**
 * A dialect: the ways in which an engine differs from other engines of its protocol, as one value of plain data. The codecs
 * read its rows and never its name (docs/engines.md; dialects.ts has the table). Pure.
 */
import type { StopReason } from "../inference/event.ts";
import type { ReasoningEffort } from "../inference/request.ts";
import type { SamplingField } from "./engine-fields.ts";

export interface Dialect {
  /** Marks the opaque values of this dialect, which come back to it alone. */
  mark: string;
  /** The fields of a chat message in which a thought stands. */
  reasoning: {
    /** Under which a thought that a client replays is sent. None: it is left out. */
    out: readonly ReasoningField[];
    /** Under which an answer's thoughts are read, the first one that has a text. */
    in: readonly ReasoningField[];
  };
  /**
   * Whether the engine signs no thoughts and reads their text: then Messages are sent thoughts without a signature, which
   * engines that sign theirs refuse, and Responses the text in place of a proof, which it could not read.
   */
  unsignedThoughts: boolean;
  /** The field for the most output tokens in chat completions. */
  cap: "max_tokens" | "max_completion_tokens";
  /** The word for each level of effort; null for a level that the engine has no word for. */
  effort: Readonly<Record<ReasoningEffort, string | null>>;
  /** The meanings of the engine's words for the end of an answer. Words that are not here are unknown. */
  finishReasons: Readonly<Partial<Record<string, FinishReason>>>;
  /** Opaque fields that go out with an answer, and come back with it in the next request (carried.ts). */
  carries: readonly CarriedField[];
  /** Fields that the engine refuses, by their paths (`cache_control.ttl`: at any depth). They are left out. */
  strips: readonly StrippedField[];
  bounds: EngineBounds;
  /** `mended`: schemas of tools that are no objects with `properties` become such. */
  schemas: "mended" | "as they come";
  /** Where a tool must be called by its name: `name` sends all tools and the name, `alone` that tool and `required`. */
  namedTool: "name" | "alone";
  /** Whether a turn may have its calls before its text (Messages). If not, the text goes first. */
  callBeforeText: "kept" | "text first";
  usage: UsageRow;
  refusals: Refusals;
  /** Whether the engine stops generating when its client leaves a streamed answer, and one that is not streamed. */
  stopsForLeaver: { streamed: boolean; whole: boolean };
  /** The names of the engine's metrics: requests that wait, the share of its cache that is taken, and the tokens that it made. */
  load: { waiting: readonly string[]; cache: readonly string[]; generated: readonly string[] };
  /** The abilities of its completions. `infill`: a suffix is asked for at another path, in another form. */
  completions: { suffix: "passed" | "infill" | "none"; echo: boolean; logprobs: boolean };
  /** The fields of sampling, beyond the contract, that its chat completions take. */
  sampling: readonly SamplingField[];
  signs: Signs;
}

/** By what an engine is known before it has answered anything. */
export interface Signs {
  /** The owners that its list of models names. */
  owners: readonly string[];
  /** The names of its host, whole or as the end of a longer name. */
  hosts: readonly string[];
  /** A page of its own, by its path from the root of the host, and the form of its JSON. */
  page: { path: string; form: RegExp } | null;
}

export const reasoningFields = ["reasoning_content", "reasoning"] as const;
export type ReasoningField = (typeof reasoningFields)[number];

/** `failed`: the generation broke off. `unfinished`: no end at all, as if the field were null. */
export type FinishReason = StopReason | "failed" | "unfinished";

/** `call`: a text on a call. `message`: a list on the message or the delta, whose pieces are joined. */
export interface CarriedField {
  kind: "call" | "message";
  path: readonly string[];
}

/** `thinking.empty`: blocks of thoughts without a text. */
export const strippedFields = ["cache_control", "cache_control.ttl", "output_config.effort", "thinking.empty"] as const;
export type StrippedField = (typeof strippedFields)[number];

/** The most that an engine takes. Infinity: it has no such limit that is known. */
export interface EngineBounds {
  tools_max: number;
  name_characters_max: number;
  /** The whole name. */
  nameForm: RegExp;
  stops_max: number;
}

/** The path of a field, from the object that it is in. A number is a place in a list. */
export type FieldPath = readonly (string | number)[];

/** Where the counts of an answer stand in a reply or a chunk. */
export interface UsageRow {
  /** The places of the usage object. The first object that is there holds. */
  objects: readonly FieldPath[];
  /** Fields beside the usage object that have counts of their own. */
  beside: readonly string[];
  chat: CountPlaces;
  responses: CountPlaces;
  /** Whether the prompt's count includes tokens that were read from a cache, or written to it. */
  promptIncludesCached: boolean;
}

/**
 * For each count its places, of which the first that has a value holds. A place is a list of paths whose values are added up;
 * a path that begins with `usage` begins at the usage object.
 */
export type CountPlaces = Readonly<
  Record<"prompt" | "cached" | "written" | "output" | "reasoning", readonly (readonly FieldPath[])[]>
>;

/** Texts of an engine's refusals, and what they mean. */
export interface Refusals {
  /** The input is longer than the context. */
  tooLong: readonly RegExp[];
  /** The count of the input in such a text, in the first group. Lower bounds ("at least") are none. */
  inputTokens: readonly RegExp[];
  /** A lower bound of that count, of an engine that stops counting where it is too much. */
  inputTokensAtLeast: readonly RegExp[];
  /** The length of the context in such a text. */
  contextTokens: readonly RegExp[];
  /** The model failed to write what was asked of it. Another attempt may succeed. Tried on the error's code and message. */
  failed: readonly RegExp[];
  /** A schema or a grammar of the request cannot be enforced. */
  format: readonly RegExp[];
  /** A 503: the queue is full while the engine is healthy. */
  full: readonly RegExp[];
  /** A refusal that the operator has to correct, whatever its status. */
  operators: readonly RegExp[];
  /** A 500 about a field of the request that the engine could not read. */
  unread: readonly { words: RegExp; param: string }[];
  /** The things that a refusal of a request may be about, by words in it. The first one that fits is named. */
  things: readonly { words: RegExp; thing: string }[];
  /** Sentences that clients may read, with holes for numbers, paths of fields and the model (engine-sentence.ts). */
  sentences: readonly string[];
}
