/** Rows of one kind of thing. On a narrow screen each row becomes a block with the names of its columns. */
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { query, replaceQuery } from "../core/address.ts";
import { Select } from "./select.tsx";

export interface Column<Row> {
  head: string;
  cell: (row: Row) => ComponentChildren;
  isNumber?: boolean;
  /** Whether the column has buttons, which are aligned to the right like numbers. */
  areActs?: boolean;
  /** Whether a narrow screen leaves the column out; the page of the row's thing shows the value, too. */
  isMinor?: boolean;
  /** The total below the column, which is the sum of its values. */
  foot?: ComponentChildren;
  /** The value by which the rows can be sorted. */
  order?: (row: Row) => number | bigint | string;
}

interface Props<Row> {
  caption: string;
  columns: readonly (Column<Row> | null | false)[];
  rows: readonly Row[];
  keyOf: (row: Row, at: number) => string;
  /** Whether a row stays below all others, however they are sorted. */
  isLast?: (row: Row) => boolean;
  /** Whether there are many rows of figures, so that a narrow screen puts two figures of a row side by side. */
  isDense?: boolean;
}

export function Table<Row>({ caption, columns, rows, keyOf, isLast = () => false, isDense }: Props<Row>) {
  const seen = columns.filter((one): one is Column<Row> => Boolean(one));
  const hasFoot = seen.some(({ foot }) => foot !== undefined);
  const sorted = sortedRows(rows, seen, isLast);
  return (
    <>
      {seen.some(({ order }) => order) && <SortSelect columns={seen} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by keyboard. */}
      <section class={isDense ? "table dense" : "table"} aria-label={caption} tabIndex={0}>
        <table>
          <caption class="hidden">{caption}</caption>
          <thead>
            <tr>
              {seen.map((column) => (
                <Head key={column.head} of={column} />
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.map((row, at) => (
              <tr key={keyOf(row, at)}>
                {seen.map((column) => (
                  <td key={column.head} data-head={column.head} class={classOf(column)}>
                    <div class="cell">{column.cell(row)}</div>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
          {hasFoot && (
            <tfoot>
              <tr>
                {seen.map((column) => (
                  <td key={column.head} data-head={column.head} class={classOf(column)}>
                    <div class="cell">{column.foot}</div>
                  </td>
                ))}
              </tr>
            </tfoot>
          )}
        </table>
      </section>
    </>
  );
}

/** The query parameter that holds the order: the name of a column, with a `-` before it to sort the largest first. */
const sortName = "sort";
const nameOf = ({ head }: { head: string }) => head.toLowerCase().replaceAll(" ", "-");

function directionOf(column: { head: string }): "ascending" | "descending" | null {
  const asked = query.value.get(sortName);
  if (asked === nameOf(column)) return "ascending";
  return asked === `-${nameOf(column)}` ? "descending" : null;
}

function sortedRows<Row>(rows: readonly Row[], columns: readonly Column<Row>[], isLast: (row: Row) => boolean) {
  const column = columns.find((one) => one.order && directionOf(one));
  if (!column) return rows;
  const sign = directionOf(column) === "ascending" ? 1 : -1;
  return rows.toSorted((one, other) => {
    if (isLast(one) !== isLast(other)) return isLast(one) ? 1 : -1;
    const [first, second] = [column.order!(one), column.order!(other)];
    return first === second ? 0 : first < second ? -sign : sign;
  });
}

function Head<Row>({ of: column }: { of: Column<Row> }) {
  const direction = column.order ? directionOf(column) : null;
  const turned = direction === null ? column.isNumber : direction === "ascending";
  return (
    <th scope="col" class={classOf(column)} aria-sort={column.order ? (direction ?? "none") : undefined}>
      {column.order ? (
        <button
          type="button"
          class="sort"
          onClick={() => replaceQuery({ [sortName]: `${turned ? "-" : ""}${nameOf(column)}` })}
        >
          {column.head}
          <span aria-hidden="true">{direction === null ? "" : direction === "ascending" ? " ↑" : " ↓"}</span>
        </button>
      ) : (
        column.head
      )}
    </th>
  );
}

const choiceOf = (column: Pick<Column<never>, "head" | "isNumber">) =>
  [(column.isNumber ? "-" : "") + nameOf(column), column.head] as const;

/** A choice of the order for narrow screens, which have no column heads. */
function SortSelect<Row>({ columns }: { columns: readonly Column<Row>[] }) {
  const id = useId();
  return (
    <div class="sort-select">
      <label class="fine" for={id}>
        Sort by
      </label>
      <Select
        id={id}
        value={query.value.get(sortName) ?? ""}
        options={[["", "the usual order"], ...columns.filter(({ order }) => order).map(choiceOf)]}
        change={(order) => replaceQuery({ [sortName]: order })}
      />
    </div>
  );
}

function classOf({ isNumber, areActs, isMinor }: Omit<Column<never>, "head" | "cell">): string | undefined {
  const kind = isNumber ? "number" : areActs ? "end" : "";
  return [kind, isMinor && "minor"].filter(Boolean).join(" ") || undefined;
}
