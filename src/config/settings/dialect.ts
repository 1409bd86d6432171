/**
 * The settings that describe how an engine differs from others of its protocol: the name of its dialect, and single
 * settings that replace those of the dialect.
 */
import { reasoningFields, strippedFields } from "../../core/protocol/dialect.ts";
import { dialectNames } from "../../core/protocol/dialects.ts";
import { choice, flag, group, list, mapping, text, type Written, whole } from "./row.ts";

export const dialect = choice(
  dialectNames,
  { default: "generic" },
  "Where the engine [differs](engines.md#dialects) from others of its protocol. `sluice init` finds it.",
);

const dialects = { absent: "" } as const;

const metricNames = (description: string) =>
  list(text({ minLength: 1, maxLength: 200 }, ""), { ...dialects, maxItems: 8 }, description);

const effortWord = (level: string) =>
  text(
    {
      pattern: "^[a-z_]{0,32}$",
      patternErrorMessage: "must be the engine's word, in small letters, or empty for none",
    },
    `The engine's word for \`${level}\`.`,
  );

export const dialectRows = group(
  {
    reasoning: list(
      choice(reasoningFields, {}, ""),
      { ...dialects, maxItems: 2, uniqueItems: true },
      "The fields of chat completions for replayed thoughts. Empty: thoughts are left out.",
    ),
    unsigned_thoughts: flag(dialects, "Whether a Messages engine is sent thoughts without a signature."),
    cap: choice(
      ["max_tokens", "max_completion_tokens"],
      dialects,
      "The field of chat completions for the most tokens to generate.",
    ),
    effort: group(
      {
        none: effortWord("none"),
        minimal: effortWord("minimal"),
        low: effortWord("low"),
        medium: effortWord("medium"),
        high: effortWord("high"),
        xhigh: effortWord("xhigh"),
        max: effortWord("max"),
      },
      "The engine's word for each level of reasoning effort; empty: it has none.",
    ),
    finish_reasons: mapping(
      choice(["stop", "length", "tool_calls", "content_filter", "failed", "unfinished"], {}, ""),
      "^.{0,64}$",
      { ...dialects, maxProperties: 32, "x-key": "must be the engine's word" },
      "What further words for the end of an answer mean; `failed`: the generation broke off; `unfinished`: no end yet.",
    ),
    strips: list(
      choice(strippedFields, {}, ""),
      { ...dialects, maxItems: strippedFields.length, uniqueItems: true },
      "Fields that a Messages engine refuses, and that are left out.",
    ),
    tools_max: whole({ ...dialects, minimum: 1, maximum: 4096 }, "The most tools that the engine takes."),
    tool_name_characters_max: whole(
      { ...dialects, minimum: 1, maximum: 256 },
      "The longest name of a tool that the engine takes.",
    ),
    stops_max: whole({ ...dialects, minimum: 0, maximum: 64 }, "The most stop sequences that the engine takes."),
    schemas: choice(
      ["mended", "as they come"],
      dialects,
      "Whether schemas of tools that the engine would refuse are [mended](engines.md#dialects).",
    ),
    named_tool: choice(
      ["name", "alone"],
      dialects,
      "How the engine gets a tool that must be called: all tools and its `name`, or it `alone` and `required`.",
    ),
    load_waiting: metricNames("The names of the metrics that count requests waiting in the engine."),
    load_cache: metricNames("The names of the metrics for the share of its cache that is taken."),
  },
  "Single rows in place of the dialect's, for an engine that differs from it.",
);
export type DialectRows = Written<typeof dialectRows.properties>;
