/**
 * A KIND of things in a file of organizations, as one value: its fields, how each field is read from the existing
 * thing, and which verb sets the field. The schema of the file, the comparison, the calls and the export derive from
 * it. To add a field is to add a row to its kind (kinds.ts). Pure.
 */
import type { TSchema } from "typebox";
import { type VerbName, verbNamed } from "../verbs.ts";

/** The values of fields, by their names in the file. */
export type Values = Readonly<Record<string, unknown>>;

/** A verb and its input, in the form of JSON. */
export interface Call {
  verb: VerbName;
  input: Record<string, unknown>;
}

/** A thing's name, and the slug of its organization, which is null for a plan and a person. */
export interface Name {
  organization: string | null;
  name: string;
}

export interface Field<Now> {
  schema: TSchema;
  /** The current value, in the form of the file. Undefined: an export leaves the field out. */
  read(now: Now): unknown;
  /** The current value in the form of the file; needed only if `read` returns another form, for the comparison. */
  written?(now: Now): unknown;
  /** The value that the field has after a creation without a value for it. */
  fresh: unknown;
  /**
   * `map`: members are compared and set one by one; null removes a member, and a member that is left out stays. `set`:
   * the order of a list does not matter. Absent: the value is compared and set as a whole.
   */
  compares?: "map" | "set";
  /** Normalizes a value that can be written in several ways, so that equal values compare as equal. */
  normal?(value: unknown): unknown;
  /** The member of the verb's input that takes the value, also in a creation. Null: no member takes it unchanged. */
  member: string | null;
  sets(value: unknown): Call;
}

export interface Kind<Now> {
  word: "plan" | "organization" | "team" | "key" | "person";
  fields: Readonly<Record<string, Field<Now>>>;
  /** The verb that creates a thing of this kind; null: a file cannot create one. */
  creation: {
    verb: VerbName;
    /** The members of the creation's input that do not come from fields. */
    input(name: Name): Values;
  } | null;
  /**
   * The members of an input with which a change names the thing that it changes. `now` is null if an earlier call of
   * the step creates the thing.
   */
  subject(name: Name, now: Now | null): Values;
  /** The thing's current version. A change is refused if the thing has another version by then. */
  version(now: Now): number;
}

/** A kind of things that can be removed if the file does not name them. */
export interface RemovableKind<Now> extends Kind<Now> {
  removes: VerbName;
}

export function setBy<Now>(
  verb: VerbName,
  member: string,
  rest: Pick<Field<Now>, "read" | "fresh" | "compares" | "normal"> & { schema?: TSchema },
): Field<Now> {
  const { [member]: schema } = verbNamed(verb).takes.properties as Record<string, TSchema>;
  if (!schema) throw new Error(`${verb} has no member '${member}'`);
  return { schema, ...rest, member, sets: (value) => ({ verb, input: { [member]: value } }) };
}
