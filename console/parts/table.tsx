/** Rows of one kind of thing. On a narrow screen each row becomes a block with the names of its columns. */
import type { ComponentChildren } from "preact";

export interface Column<Row> {
  head: string;
  cell: (row: Row) => ComponentChildren;
  isNumber?: boolean;
  /** Buttons, which end on one line however many there are. */
  areActs?: boolean;
  /** Left out on a narrow screen: the page of the thing has it. */
  isMinor?: boolean;
  /** Its total stands below the column, and is the sum of it. */
  foot?: ComponentChildren;
}

interface Props<Row> {
  caption: string;
  columns: readonly (Column<Row> | null | false)[];
  rows: readonly Row[];
  keyOf: (row: Row, at: number) => string;
}

export function Table<Row>({ caption, columns, rows, keyOf }: Props<Row>) {
  const seen = columns.filter((one): one is Column<Row> => Boolean(one));
  const hasFoot = seen.some(({ foot }) => foot !== undefined);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by keyboard.
    <section class="table" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {seen.map((column) => (
              <th key={column.head} scope="col" class={classOf(column)}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={keyOf(row, at)}>
              {seen.map((column) => (
                <td key={column.head} data-head={column.head} class={classOf(column)}>
                  {column.cell(row)}
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
                  {column.foot}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </section>
  );
}

function classOf({ isNumber, areActs, isMinor }: Omit<Column<never>, "head" | "cell">): string | undefined {
  const kind = isNumber ? "number" : areActs ? "end" : "";
  return [kind, isMinor && "minor"].filter(Boolean).join(" ") || undefined;
}
