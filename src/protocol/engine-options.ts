/** What engines of both OpenAI protocols understand of a choice of tools and of reasoning: less than callers may say. */
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

/** A budget, where the caller gave nothing else, becomes a level: docs/design/protocols.md, Reasoning effort. */
export function effortOf({ effort, budgetTokens }: Reasoning): string | undefined {
  if (effort) return engineEffort[effort];
  if (budgetTokens === undefined) return undefined;
  if (budgetTokens < 4096) return "low";
  return budgetTokens < 16_384 ? "medium" : "high";
}

/**
 * `allowed_tools` is a hard constraint that engines do not know: they see the allowed tools only. So it is with the one
 * tool that must be called: llama.cpp takes a named choice for `auto`, while all engines know `required`.
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
