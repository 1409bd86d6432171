/** Checks that each model name in a file means one model, and that replacements do not lead in a circle. */
import { didYouMean } from "./diagnose.ts";
import type { FoundProblems } from "./problem.ts";
import type { ModelEntry } from "./settings/model.ts";

/** Yields the problems. An entry of `models` is null if something else is wrong with that model. */
export function* mistakenNames(models: (ModelEntry | null)[]): FoundProblems {
  const byId = new Map(models.flatMap((model) => (model ? [[model.id, model] as const] : [])));
  const isWhole = models.every((model) => model !== null);
  const owners = new Map<string, string>();
  for (const [index, model] of models.entries()) {
    if (!model) continue;
    for (const [at, alias] of (model.aliases ?? []).entries()) {
      const path = ["models", index, "aliases", at];
      const owner = owners.get(alias);
      if (byId.has(alias)) yield [path, alias === model.id ? "is the model's own id" : "is the id of another model"];
      else if (owner !== undefined) yield [path, `is already an alias of '${owner}'`];
      else owners.set(alias, model.id);
    }
  }
  for (const [index, model] of models.entries()) {
    const next = model?.replaced_by;
    if (!model || next === undefined) continue;
    const path = ["models", index, "replaced_by"];
    if (byId.has(next)) {
      if (isCircular(model, byId)) yield [path, "leads back to this model; a replacement must come to an end"];
    } else if (owners.has(next)) yield [path, `is an alias; write the id '${owners.get(next)}'`];
    else if (isWhole) yield [path, `names no model of this file${didYouMean(next, [...byId.keys()])}`];
  }
}

function isCircular(model: ModelEntry, byId: ReadonlyMap<string, ModelEntry>): boolean {
  const seen = new Set<ModelEntry>();
  let next = byId.get(model.replaced_by ?? "");
  while (next && next !== model && !seen.has(next)) {
    seen.add(next);
    next = byId.get(next.replaced_by ?? "");
  }
  return next === model;
}
