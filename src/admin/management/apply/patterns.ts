/** The patterns of models for which a file of organizations sets limits, with their places. Pure. */
import type { Path } from "../../../core/schema/walk.ts";
import type { WantedFile } from "./wanted.ts";

export interface PatternPlace {
  pattern: string;
  path: Path;
}

/** The patterns in the file, without the patterns whose limits the file removes. */
export function patternsIn({ organizations, people = {} }: WantedFile): PatternPlace[] {
  const ofOrganizations = Object.entries(organizations).flatMap(([slug, { limits, teams, keys }]) => [
    ...patternsOf(["organizations", slug], limits),
    ...ofEach(["organizations", slug, "teams"], teams),
    ...ofEach(["organizations", slug, "keys"], keys),
  ]);
  const ofPeople = Object.entries(people).flatMap(([name, { limits = {} }]) =>
    Object.entries(limits).flatMap(([slug, one]) => modelsIn(["people", name, "limits", slug], one)),
  );
  return [...ofOrganizations, ...ofPeople];
}

type Things = Readonly<Record<string, { readonly limits?: unknown }>>;
const ofEach = (path: Path, things: Things = {}) =>
  Object.entries(things).flatMap(([name, { limits }]) => patternsOf([...path, name], limits));

const patternsOf = (path: Path, limits: unknown) => modelsIn([...path, "limits"], limits);

function modelsIn(path: Path, limits: unknown): PatternPlace[] {
  const { models = {} } = (limits ?? {}) as { models?: Readonly<Record<string, unknown>> };
  return Object.entries(models).flatMap(([pattern, value]) =>
    value === null ? [] : [{ pattern, path: [...path, "models", pattern] }],
  );
}
