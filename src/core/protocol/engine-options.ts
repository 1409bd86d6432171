/** Says a choice of tools and a reasoning effort in the words of an engine of either OpenAI protocol. */
import {
  type InferenceRequest,
  type Reasoning,
  type ReasoningEffort,
  reasoningEfforts,
  type Tool,
} from "../inference/request.ts";
import type { Dialect } from "./dialect.ts";

/**
 * The engine's word for the level of effort, or for the next lower one for which it has a word. A budget becomes a level if
 * the caller gave no effort: docs/design/protocols.md, Reasoning effort.
 */
export function effortOf({ effort, budgetTokens }: Reasoning, dialect: Dialect): string | undefined {
  const level = effort ?? levelOf(budgetTokens);
  if (level === undefined) return undefined;
  const from = reasoningEfforts.indexOf(level);
  return reasoningEfforts
    .slice(0, from + 1)
    .reduceRight<string | undefined>(
      (word, lower) =>
        word ?? (lower === "none" && level !== "none" ? undefined : (dialect.effort[lower] ?? undefined)),
      undefined,
    );
}

function levelOf(budgetTokens: number | undefined): ReasoningEffort | undefined {
  if (budgetTokens === undefined) return undefined;
  if (budgetTokens < 4096) return "low";
  return budgetTokens < 16_384 ? "medium" : "high";
}

interface ChosenTools {
  tools: Tool[];
  choice: string | undefined;
  /** The tool that must be called, if the engine is told its name in place of `choice`. */
  named?: string;
  parallel: boolean | undefined;
}

/**
 * Engines do not know `allowed_tools`, which is a hard constraint: they get only the allowed tools. A tool that must be
 * called is named to engines that obey this, so that their prefix caches keep the list; the others get it alone and with
 * `required`, which all engines know. `isNameable`: whether the protocol has a plain name for the tool.
 */
export function allowedTools(
  request: InferenceRequest,
  { namedTool }: Dialect,
  isNameable: (tool: Tool) => boolean = () => true,
): ChosenTools {
  const { tools, toolChoice: choice, parallelToolCalls: parallel } = request;
  switch (choice?.kind) {
    case "tool": {
      const only = namedIn(tools, [choice.name]);
      if (namedTool === "name" && only.length === 1 && only.every(isNameable))
        return { tools, choice: undefined, named: choice.name, parallel };
      return { tools: only, choice: "required", parallel: false };
    }
    case "allowed":
      return { tools: namedIn(tools, choice.names), choice: choice.mode, parallel };
    default:
      return { tools, choice: choice?.kind, parallel };
  }
}

function namedIn(tools: Tool[], names: readonly string[]): Tool[] {
  return tools.filter((tool) => names.includes(tool.name));
}
