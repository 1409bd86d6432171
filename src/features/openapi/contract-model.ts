/** A model as the contract needs it, and the model that an example names. */
import type { Model } from "../../core/inference/model.ts";
import type { Example } from "../../core/operations/operation.ts";

/** The part of the catalog in force that the OpenAPI document needs. */
export interface ContractModel extends Pick<Model, "id" | "capabilities" | "extraParams" | "kind"> {
  aliases?: readonly string[];
}

/** The first model of the catalog that has what an example needs; null if there is none. */
export function exampleModel(
  models: readonly ContractModel[],
  { needs, kind = "chat" }: Pick<Example, "needs" | "kind">,
): string | null {
  const ofKind = models.filter((model) => (model.kind ?? "chat") === kind);
  return ofKind.find((model) => needs.every((need) => model.capabilities.has(need)))?.id ?? null;
}
