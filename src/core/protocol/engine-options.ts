/** Writes the choice of tools and the reasoning effort for engines of both OpenAI protocols. */
import {
  type InferenceRequest,
  type Reasoning,
  type ReasoningEffort,
  reasoningEfforts,
  type Tool,
} from "../inference/request.ts";
import type { Dialect } from "./dialect.ts";

/**
 * The engine's word for the effort, or for the next lower effort that it has a word for. A budget is made into an
 * effort if the caller gave none: docs/design/protocols.md, Reasoning effort.
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
  /** The name of the tool that must be called, if the engine is sent it in place of `choice`. */
  named?: string;
  parallel: boolean | undefined;
}

/**
 * The tools and the choice for an engine. Engines do not know `allowed_tools`, which is a hard constraint: they get
 * only the allowed tools. A tool that must be called is named to engines that obey a name, so that their prefix caches
 * keep the whole list; others get it alone and with `required`, which all engines know. `isNameable`: whether the
 * protocol has a plain name for the tool.
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
