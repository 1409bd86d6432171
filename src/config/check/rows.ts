/**
 * The rows of sluice.yaml that follow from an engine's answers. A row is added for a yes or a no, and never for
 * `unknown`; what the file has already stays. Pure.
 */
import type { Capability } from "../../core/inference/request.ts";
import type { Dialect } from "../../core/protocol/dialect.ts";
import type { DialectName } from "../../core/protocol/dialects.ts";
import { samplingFields } from "../../core/protocol/engine-fields.ts";
import type { DialectRows } from "../settings/dialect.ts";
import type { ModelEntry } from "../settings/model.ts";
import type { UpstreamEntry } from "../settings/upstream.ts";
import type { Verdict } from "./question.ts";

type Verdicts = ReadonlyMap<string, Verdict>;

/** For each of these questions, the capability that a yes shows. */
const capabilityOf: readonly (readonly [question: string, Capability])[] = [
  ["call", "tools"],
  ["two_calls", "parallel_tools"],
  ["picture", "vision"],
  ["thought", "reasoning"],
  ["schema", "structured_output"],
  ["logprobs", "logprobs"],
];

/**
 * The rows of an upstream, in the order in which they are written. `found`: the dialect by which the engine was
 * recognised.
 */
export function upstreamRows(
  verdicts: Verdicts,
  dialect: Dialect,
  found: DialectName | null,
): Pick<UpstreamEntry, "dialect" | "dialect_rows" | "running_usage" | "load"> {
  const rows = dialectRowsOf(verdicts, dialect);
  const isYes = (question: string) => verdicts.get(question) === "yes";
  return {
    ...(found ? { dialect: found } : {}),
    ...(Object.keys(rows).length > 0 ? { dialect_rows: rows } : {}),
    ...(isYes("running_usage_usage")
      ? { running_usage: "usage" as const }
      : isYes("running_usage_timings")
        ? { running_usage: "timings" as const }
        : {}),
    ...(isYes("load") ? { load: {} } : {}),
  };
}

function dialectRowsOf(verdicts: Verdicts, dialect: Dialect): DialectRows {
  const rows: DialectRows = {};
  const other = dialect.cap === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  if (verdicts.get(`cap_${dialect.cap}`) === "no" && verdicts.get(`cap_${other}`) === "yes") rows.cap = other;
  const { out } = dialect.reasoning;
  const read = (["reasoning", "reasoning_content"] as const).filter(
    (name) => verdicts.get(`thought_${name}`) === "yes",
  );
  if (read.length > 0 && !out.some((name) => read.includes(name))) rows.reasoning = read.slice(0, 1);
  if (verdicts.get("thought_unsigned") === "yes" && !dialect.unsignedThoughts) rows.unsigned_thoughts = true;
  if (verdicts.get("stops") === "no" && dialect.bounds.stops_max > 4) rows.stops_max = 4;
  const named = verdicts.get("named_call");
  if (named === "no" && dialect.namedTool === "name") rows.named_tool = "alone";
  if (named === "yes" && dialect.namedTool === "alone") rows.named_tool = "name";
  return rows;
}

/** The rows of a model, by what its engine answered. A list names only what the engine was found to support. */
export function modelRows(verdicts: Verdicts): Pick<ModelEntry, "capabilities" | "bounds" | "extra_params"> {
  const capabilities = capabilitiesOf(verdicts, "yes");
  const extra = samplingFields.filter((name) => verdicts.get(`field_${name}`) === "yes");
  return {
    ...(capabilities.length > 0 ? { capabilities } : {}),
    ...(extra.length > 0 ? { extra_params: [...extra] } : {}),
    ...(verdicts.get("text") === "yes" ? { bounds: "engine" as const } : {}),
  };
}

export function capabilitiesOf(verdicts: Verdicts, verdict: Verdict): Capability[] {
  return capabilityOf.filter(([question]) => verdicts.get(question) === verdict).map(([, capability]) => capability);
}
