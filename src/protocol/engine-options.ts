/** Reduces a choice of tools and a reasoning effort to the values that engines of both OpenAI protocols understand. */
import type { InferenceRequest, Reasoning, ReasoningEffort, Tool } from "../inference/request.ts";

/** Engines know three levels and "none": docs/design/protocols.md, Reasoning effort. */
const engineEffort = {
  none: "none",
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "high",
  max: "high",
} as const satisfies Record<ReasoningEffort, string>;

/** The level of effort. A budget becomes a level if the caller gave no effort: docs/design/protocols.md, Reasoning effort. */
export function effortOf({ effort, budgetTokens }: Reasoning): string | undefined {
  if (effort) return engineEffort[effort];
  if (budgetTokens === undefined) return undefined;
  if (budgetTokens < 4096) return "low";
  return budgetTokens < 16_384 ? "medium" : "high";
}

/**
 * Engines do not know `allowed_tools`, which is a hard constraint: they get only the allowed tools. A tool that must be
 * called is sent alone and with `required`, which all engines know: llama.cpp takes a named choice for `auto`.
 */
export function allowedTools(request: InferenceRequest): {
  tools: Tool[];
  choice: string | undefined;
  parallel: boolean | undefined;
} {
  const { tools, toolChoice: choice, parallelToolCalls: parallel } = request;
  switch (choice?.kind) {
    case "tool":
      return { tools: namedIn(tools, [choice.name]), choice: "required", parallel: false };
    case "allowed":
      return { tools: namedIn(tools, choice.names), choice: choice.mode, parallel };
    default:
      return { tools, choice: choice?.kind, parallel };
  }
}

function namedIn(tools: Tool[], names: readonly string[]): Tool[] {
  return tools.filter((tool) => names.includes(tool.name));
}
