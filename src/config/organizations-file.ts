/**
 * Reads and writes the file of `sluice apply`. Reading it gives the organizations as they should be, or all problems of
 * the file.
 */
import type { TProperties } from "typebox";
import Type from "typebox";
import { Check } from "typebox/value";
import { Document, isMap, type Scalar, visit } from "yaml";
import type { Kind } from "../admin/management/apply/kind.ts";
import { keyKind, organizationKind, planKind, teamKind } from "../admin/management/apply/kinds.ts";
import { PersonEntry, personName } from "../admin/management/apply/person-kind.ts";
import type { Problem } from "../admin/management/apply/step.ts";
import type { WantedFile } from "../admin/management/apply/wanted.ts";
import { withoutMargins } from "../admin/management/verb.ts";
import { verbNamed } from "../admin/management/verbs.ts";
import type { Shape } from "../core/schema/shape.ts";
import type { Path } from "../core/schema/walk.ts";
import { reportOffences } from "./diagnose.ts";
import { ConfigurationError, type FilePosition, Problems } from "./problem.ts";
import { readYaml } from "./yaml.ts";

/** The largest size of the file: enough for ten thousand keys with all their fields. */
export const organizationsFile_bytes_max = 16 * 1024 * 1024;
const things_max = 10_000;

/**
 * The schema of a mapping from names to entries of one kind. `names`: the pattern of a name, and what messages say that
 * a name must be.
 */
function section<Now>({ fields }: Kind<Now>, names: { pattern: string; "x-must-be": string }, more: TProperties = {}) {
  const schemas = Object.entries(fields).map(([name, { schema }]) => [name, Type.Optional(schema)]);
  const entry = Type.Object({ ...Object.fromEntries(schemas), ...more }, { additionalProperties: false });
  return Type.Record(Type.String(), entry, { propertyNames: Type.String(names), maxProperties: things_max });
}

const anyName = {
  pattern: "^(?=.{1,200}$)\\S(?:.*\\S)?$",
  "x-must-be": "a name: 1 to 200 characters, without spaces at its ends",
};
const { name: planName } = verbNamed("createPlan").takes.properties;
const { slug } = verbNamed("createOrganization").takes.properties;

const OrganizationsFile = Type.Object(
  {
    plans: Type.Optional(section(planKind, planName as never)),
    organizations: section(organizationKind, slug as never, {
      teams: Type.Optional(section(teamKind, anyName)),
      keys: Type.Optional(section(keyKind, anyName)),
    }),
    people: Type.Optional(
      Type.Record(Type.String(), PersonEntry, { propertyNames: Type.String(personName), maxProperties: things_max }),
    ),
  },
  { additionalProperties: false },
);

export interface OrganizationsFile {
  wanted: WantedFile;
  /** The problems as lines with their positions: `file:line:column: path: message`. */
  linesOf(problems: readonly Problem[]): string[];
}

/** Reads the file. Throws ConfigurationError; every problem begins with `path`. */
export function readOrganizationsFile(bytes: Uint8Array, path: string): OrganizationsFile {
  const problems = new Problems(path);
  const yaml = readYaml(bytes, { environment: {}, readFile: () => null }, problems, organizationsFile_bytes_max);
  const value = yaml && withoutMargins(yaml.value);
  if (yaml) reportOffences(OrganizationsFile as Shape, { ...yaml, value }, problems);
  if (problems.any || !yaml || !Check(OrganizationsFile, value)) throw new ConfigurationError(problems.lines());
  const placeOf = (at: Path): FilePosition | null => {
    const { place, namePlace } = yaml.locate(at);
    return namePlace ?? place;
  };
  return {
    wanted: value as WantedFile,
    linesOf(found) {
      const all = new Problems(path);
      for (const { path: at, message } of found) all.add(at, message, placeOf(at));
      return all.lines();
    },
  };
}

/** The text of a file with these organizations. `people`: the comments after ids of people. */
export function organizationsYaml(file: WantedFile, comment: string, people: ReadonlyMap<string, string>): string {
  const document = new Document(file, { aliasDuplicateObjects: false });
  document.commentBefore = comment;
  const section = document.get("people");
  for (const { key } of isMap<Scalar<string>>(section) ? section.items : []) {
    const note = people.get(key.value);
    if (note !== undefined) key.commentBefore = ` ${note}`;
  }
  visit(document, {
    // Lists are written on one line: they have only names or numbers.
    Seq(_, list) {
      list.flow = true;
    },
    Scalar(step, scalar) {
      if (step !== "key" && typeof scalar.value === "string") scalar.value = scalar.value.replaceAll("${", () => "$${");
    },
  });
  return document.toString({ lineWidth: 0 });
}
