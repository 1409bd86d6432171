/**
 * Looks up all names that are asked for in one turn of the event loop, with statements whose plans are kept
 * (docs/design/runtime.md, Drizzle and Postgres). For an array of unknown length, Postgres assumes ten names. If an
 * array had fewer, a plan for its own length would always seem cheaper, so Postgres would plan again at each run. A
 * look-up of keys joins eleven tables: planning it takes 1 ms, more than the rest of a request. So there are statements
 * for 1, 4 and 10 names, and one that takes an array of more.
 */
import { type SQL, type SQLWrapper, sql } from "drizzle-orm";

/** The number of names that Postgres assumes of an array whose length it does not know. */
const assumed = 10;
const sizes = [1, 4, assumed] as const;

interface Query<Row> {
  prepare(name: string): { execute(values: Record<string, unknown>): PromiseLike<Row[]> };
}

interface Names {
  /** The name of the prepared statements. */
  name: string;
  /** The column that has a row's name, and its type in SQL. */
  column: SQLWrapper;
  type: "bytea" | "uuid";
}

/**
 * Makes a look-up by names. `find` makes the query of the rows for which the condition holds. If fewer names are asked
 * for than a statement has parameters, the first name is repeated.
 */
export function lookUp<Asked, Row>(
  { name, column, type }: Names,
  find: (isAsked: SQL) => Query<Row>,
): (asked: readonly Asked[]) => PromiseLike<Row[]> {
  const cast = sql.raw(type);
  const few = sizes.map((size) => {
    const places = Array.from({ length: size }, (_, at) => `name_${at}`);
    const names = places.map((place) => sql`${sql.placeholder(place)}::${cast}`);
    const prepared = find(sql`${column} in (${sql.join(names, sql`, `)})`).prepare(`${name}_${size}`);
    const run = (asked: readonly Asked[]) =>
      prepared.execute(Object.fromEntries(places.map((place, at) => [place, asked[at] ?? asked[0]])));
    return { size, run };
  });
  const many = find(sql`${column} = any (${sql.placeholder("names")}::${cast}[])`).prepare(name);
  return (asked) => {
    const statement = few.find(({ size }) => size >= asked.length);
    return statement ? statement.run(asked) : many.execute({ names: asked });
  };
}
