/** CODEX: the list of models from which Codex fills its picker, with the instructions that Codex sends. */
import type { Model } from "../../core/inference/model.ts";
import type { CodexModel } from "../../core/operations/codex-models.ts";

const efforts = {
  low: "Thinks little",
  medium: "Thinks as much as most tasks need",
  high: "Thinks long",
} as const;

/** The models that take tools: Codex sends tools with every request. */
export function codexModels(models: readonly Model[]): CodexModel[] {
  return models.filter(({ capabilities }) => capabilities.has("tools")).map(codexModel);
}

function codexModel({ id, contextTokens, capabilities }: Model, place: number): CodexModel {
  const reasons = capabilities.has("reasoning");
  const levels = Object.entries(efforts) as [keyof typeof efforts, string][];
  return {
    slug: id,
    display_name: id,
    description: `${contextTokens} tokens of context`,
    ...(reasons ? { default_reasoning_level: "medium" } : {}),
    supported_reasoning_levels: reasons ? levels.map(([effort, description]) => ({ effort, description })) : [],
    shell_type: "unified_exec",
    visibility: "list",
    supported_in_api: true,
    priority: place,
    upgrade: null,
    base_instructions: instructions,
    supports_reasoning_summaries: reasons,
    support_verbosity: false,
    default_verbosity: null,
    apply_patch_tool_type: null,
    truncation_policy: { mode: "tokens", limit: 10_000 },
    supports_parallel_tool_calls: capabilities.has("parallel_tools"),
    context_window: contextTokens,
    experimental_supported_tools: [],
    input_modalities: capabilities.has("vision") ? ["text", "image"] : ["text"],
  };
}

/**
 * Codex has no instructions of its own for a model in this list, so without this text the model would not know its
 * task.
 */
const instructions = `You are a coding agent. You work through Codex in the user's terminal, in the folder that the environment context names.

- Read what matters before you act. Search with rg where it exists, else with grep.
- Do what the user asked for, and no more. Keep to the style of the code around your change.
- Obey the AGENTS.md files of the folders that you work in. One in a deeper folder counts before one above it, and the user's words count before both.
- Run commands with your tool for it. Write new files by a command. To change a part of a file, run apply_patch with the patch as a here-document:

apply_patch <<'PATCH'
*** Begin Patch
*** Update File: src/example.ts
@@
 a line that stays
-a line that goes
+a line that comes
*** End Patch
PATCH

- Check your work with the project's own tests, types and lint, if there are any. If you could not check something, say so.
- Leave alone what others have changed. Commit, push or delete only if you were asked to.
- If a command fails, find out why before you try something else. If you cannot go on, say what you need.
- Go on until the task is done. Then say in a few sentences what you changed and where.`;
