/**
 * AN OPERATION OF THE MANAGEMENT INTERFACE, as one value: the verb of src/management that it is, its path, who may, what it
 * takes and answers. The list in operations.ts mounts these values, guards them, describes them in management.json, and
 * tells the CLI how to ask another node for them; a new operation is one new value there.
 */
import type { Static, TObject, TSchema } from "typebox";
import Type from "typebox";
import type { Management } from "../../management/management.ts";
import { page_max } from "../../management/page.ts";
import type { Role } from "../../store/operators.ts";
import type { ManagementTag } from "./tag.ts";

export type Verb = keyof Management;
export type Result<V extends Verb> = Awaited<ReturnType<Management[V]>>;

interface Declared<V extends Verb, Answer extends TSchema> {
  /** It is the operation's id, too. */
  verb: V;
  method: "get" | "post" | "put" | "patch";
  /** Below `/management/v1`. */
  path: string;
  /** The verb's argument that stands in the place of `{id}`. */
  id?: string;
  tag: ManagementTag;
  summary: string;
  description: string;
  /** Who may, beside `admin`. An `organization-admin` has a verb that sees only the own organization. */
  also: readonly Exclude<Role, "admin">[];
  /** The verb's other arguments, in snake case: of a `get` in the query, else in the body. */
  takes?: TObject;
  /**
   * `creation`: an `idempotency-key` makes a repeat harmless. `change`: takes the version that was read, as `if-match`.
   */
  kind: "reading" | "creation" | "change" | "act";
  answers: Answer;
  /** An answer as it looks, and what was asked for it. */
  example: { id?: string; takes?: Record<string, unknown>; answer: Static<Answer> };
  /** The verb's result as it is answered. */
  encode(result: Result<V>): unknown;
  /** Other forms of the answer than JSON, by the name that `format` gives; `takes` has that parameter. */
  formats?: Readonly<Record<string, Format<V>>>;
  /** And back: what the CLI gets of another node. `value` is the answer, with Dates and in camel case (revived.ts). */
  read(value: never): Result<V>;
}

interface Format<V extends Verb> {
  /** Media type. */
  type: string;
  /** What a browser saves it as. */
  filename: string;
  /** The arguments of the verb, where this form needs others than were given. */
  asks?(taken: Record<string, unknown>): Record<string, unknown>;
  /** Line by line. */
  write(result: Result<V>): Iterable<string>;
}

export type ManagementOperation = Declared<Verb, TSchema>;

export function managementOperation<V extends Verb, Answer extends TSchema>(
  declared: Declared<V, Answer>,
): ManagementOperation {
  return declared as unknown as ManagementOperation;
}

export const managementPath = "/management/v1";

/** What every list takes. */
export const pageParameters = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: page_max,
      description: `How many at most; 100 if absent.`,
      "x-must-be": `a whole number from 1 to ${page_max}`,
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description: "`next_cursor` of the part before.",
      "x-must-be": "the `next_cursor` of the part before",
    }),
  ),
};

/** A part of a list, in a stable order. */
export function pageSchema<Item extends TSchema>(item: Item, $id: string) {
  return Type.Object(
    {
      data: Type.Array(item),
      next_cursor: Type.Union([Type.String(), Type.Null()], { description: "Null: this was the last part." }),
    },
    { $id },
  );
}

interface AnyPage<Item> {
  items: Item[];
  next: string | null;
}

export function pageShown<Item>({ items, next }: AnyPage<Item>, encode: (item: Item) => unknown) {
  return { data: items.map(encode), next_cursor: next };
}

export function pageRead<Read, Item>(
  { data, nextCursor }: { data: Read[]; nextCursor: string | null },
  read: (value: Read) => Item,
): AnyPage<Item> {
  return { items: data.map(read), next: nextCursor };
}

/** Words in a request, bounded; what they mean, the verb decides. */
export const words = (description: string) => Type.String({ minLength: 1, maxLength: 1000, description });
