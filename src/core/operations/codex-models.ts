/**
 * The list of models in the form from which Codex fills its picker. Codex asks with its version (`client_version`) and
 * reads `models`; other clients read `data` beside it. src/features/codex makes the list.
 */
import Type from "typebox";
import { ModelId } from "../protocol/shapes/contract.ts";

const Effort = Type.Enum(["low", "medium", "high"], { type: "string" });

export const CodexModel = Type.Object(
  {
    slug: ModelId,
    display_name: Type.String(),
    description: Type.String(),
    default_reasoning_level: Type.Optional(Effort),
    supported_reasoning_levels: Type.Array(Type.Object({ effort: Effort, description: Type.String() })),
    shell_type: Type.Literal("unified_exec"),
    visibility: Type.Literal("list"),
    supported_in_api: Type.Literal(true),
    priority: Type.Integer({ minimum: 0, description: "The place in the list." }),
    upgrade: Type.Null(),
    base_instructions: Type.String({ description: "What Codex tells the model to be." }),
    supports_reasoning_summaries: Type.Boolean(),
    support_verbosity: Type.Literal(false),
    default_verbosity: Type.Null(),
    apply_patch_tool_type: Type.Null(),
    truncation_policy: Type.Object({ mode: Type.Literal("tokens"), limit: Type.Integer({ minimum: 1 }) }),
    supports_parallel_tool_calls: Type.Boolean(),
    context_window: Type.Integer({ minimum: 1 }),
    experimental_supported_tools: Type.Array(Type.String(), { maxItems: 0 }),
    input_modalities: Type.Array(Type.Enum(["text", "image"], { type: "string" })),
  },
  { $id: "CodexModel", description: "A model with tools, in the form that Codex expects." },
);
export type CodexModel = Type.Static<typeof CodexModel>;
