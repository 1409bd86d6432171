/**
 * The values between JavaScript and Postgres, the same on both drivers. Every parameter is sent as text of the type
 * that the statement asks for, and every value comes back as text and is parsed here by its type's number: int2, int4,
 * int8, float → number (an int8 beyond 2^53 throws) · numeric → string · bool → boolean · timestamptz → Date (whole
 * milliseconds) · date, timestamp → string · bytea → Uint8Array · json, jsonb → parsed · arrays of these → arrays · all
 * else → string · null → null.
 */
import { DatabaseError } from "./database-error.ts";

/** A parameter as text. Objects become JSON; an array becomes an array literal (for jsonb, pass the JSON text). */
export function parameter(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "t" : "f";
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array)
    return `\\x${Buffer.from(value.buffer, value.byteOffset, value.length).toString("hex")}`;
  if (Array.isArray(value)) return `{${value.map(element).join(",")}}`;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function element(value: unknown): string {
  if (Array.isArray(value)) return parameter(value) ?? "NULL";
  const text = parameter(value);
  return text === null ? "NULL" : `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

type Parse = (text: string) => unknown;

/** The SQLSTATE numeric_value_out_of_range. */
const out_of_range = "22003";

const identity: Parse = (text) => text;
const integer64: Parse = (text) => {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new DatabaseError(`a 64-bit integer beyond 2^53: ${text}`, out_of_range);
  return value;
};
/** Parses `2026-11-21 03:00:00.123456+00`; the session's zone is UTC. */
const instant: Parse = (text) => {
  const value = new Date(`${text.replace(" ", "T").replace(/\+00$/, "Z")}`);
  if (Number.isNaN(value.getTime())) throw new DatabaseError(`not an instant: ${text}`, out_of_range);
  return value;
};
const bytes: Parse = (text) => new Uint8Array(Buffer.from(text.slice(2), "hex"));

/** The types by their numbers in pg_type, which never change for built-in types. */
const scalars: readonly { type: number; array: number; parse: Parse }[] = [
  { type: 16, array: 1000, parse: (text) => text === "t" },
  { type: 17, array: 1001, parse: bytes },
  { type: 20, array: 1016, parse: integer64 },
  { type: 21, array: 1005, parse: Number },
  { type: 23, array: 1007, parse: Number },
  { type: 25, array: 1009, parse: identity },
  { type: 26, array: 1028, parse: Number },
  { type: 114, array: 199, parse: (text) => JSON.parse(text) },
  { type: 700, array: 1021, parse: Number },
  { type: 701, array: 1022, parse: Number },
  { type: 1043, array: 1015, parse: identity },
  { type: 1082, array: 1182, parse: identity },
  { type: 1114, array: 1115, parse: identity },
  { type: 1184, array: 1185, parse: instant },
  { type: 1700, array: 1231, parse: identity },
  { type: 2950, array: 2951, parse: identity },
  { type: 3802, array: 3807, parse: (text) => JSON.parse(text) },
];

/** The parsers of all types that are not plain text. */
export const parsers: ReadonlyMap<number, Parse> = new Map(
  scalars.flatMap(({ type, array, parse }): [number, Parse][] => [
    [type, parse],
    [array, (text) => arrayOf(text, parse)],
  ]),
);

/** Parses an array literal such as `{1,NULL,"a \"b\""}`, nested ones too. */
function arrayOf(text: string, parse: Parse): unknown[] {
  let at = text.indexOf("{");
  const list = (): unknown[] => {
    const values: unknown[] = [];
    at++;
    while (at < text.length && text[at] !== "}") {
      if (text[at] === ",") at++;
      else if (text[at] === "{") values.push(list());
      else if (text[at] === '"') values.push(parse(quoted()));
      else values.push(bare());
    }
    at++;
    return values;
  };
  const quoted = (): string => {
    let value = "";
    for (at++; at < text.length && text[at] !== '"'; at++) {
      if (text[at] === "\\") at++;
      value += text[at];
    }
    at++;
    return value;
  };
  const bare = (): unknown => {
    const from = at;
    while (at < text.length && text[at] !== "," && text[at] !== "}") at++;
    const value = text.slice(from, at);
    return value === "NULL" ? null : parse(value);
  };
  return list();
}
