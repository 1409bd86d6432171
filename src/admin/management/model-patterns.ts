/**
 * Patterns of models: the ID of one model or its alias, or `prefix/*`, which also matches models that do not exist yet.
 * Pure.
 */

import { closestName } from "../../core/schema/closest.ts";
import { matchesModel } from "../../core/store/budget.ts";
import type { ManagedCatalog } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";

/** The names that a pattern can match: the ids and the aliases of the models. */
export const namesOf = ({ models, aliases }: Pick<ManagedCatalog, "models" | "aliases">): string[] => [
  ...models,
  ...(aliases?.keys() ?? []),
];

/**
 * Returns the pattern, or refuses it. A prefix need not match any model yet; an ID or an alias has to be among `names`,
 * the names in the catalog.
 */
export function knownPattern(pattern: string, names: readonly string[]): string {
  if (!pattern.endsWith("/*")) return parse.models([pattern], names)[0]!;
  if (/^[^\s*]+\/\*$/.test(pattern)) return pattern;
  return fail(`'${parse.excerpt(pattern)}' is no pattern of models. Name a model, or a prefix such as openai/*.`);
}

/**
 * The patterns that match none of the models' names, each with the most similar name, which was perhaps meant; null if
 * none is similar.
 */
export function unmatchedPatterns(patterns: Iterable<string>, names: readonly string[]): Record<string, string | null> {
  const unmatched = [...patterns].filter((pattern) => !names.some((name) => matchesModel(pattern, name)));
  return Object.fromEntries(unmatched.map((pattern) => [pattern, closestPattern(pattern, names)]));
}

function closestPattern(pattern: string, models: readonly string[]): string | null {
  if (!pattern.endsWith("/*")) return closestName(pattern, models);
  const prefix = closestName(pattern.slice(0, -2), new Set(models.flatMap(prefixesOf)));
  return prefix && `${prefix}/*`;
}

/** The prefixes of a model: `a` and `a/b` of `a/b/c`. */
function prefixesOf(model: string): string[] {
  const parts = model.split("/").slice(0, -1);
  return parts.map((_, last) => parts.slice(0, last + 1).join("/"));
}

/**
 * The end of the warning that a pattern matches no model. `closest`: the model with the most similar name; null if none
 * is similar.
 */
export function unmatchedInWords(closest: string | null): string {
  const advice = closest === null ? "to list the models, run: sluice model list" : `did you mean '${closest}'?`;
  return `matches no model today, so its limits wait for one; ${advice}`;
}
