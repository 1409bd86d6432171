// Mutants of SQL functions: they change predicates, boundaries, order, sums, fallbacks for null, and statements of
// PL/pgSQL.

import type { Site } from "./sites.ts";
import type { Change } from "./source.ts";

interface Token {
  /** The text of the token, in lower case. A quoted text is one token. */
  word: string;
  start: number;
  end: number;
  /** The number of open parentheses before the token. */
  depth: number;
}

type SqlOperator = (tokens: readonly Token[], at: number, text: string) => Change | null;

/**
 * The mutants of an SQL file, all within the bodies of functions (between dollar quotes). The rest of the file creates
 * tables, which the tests of the schema check.
 */
export function sqlSitesOf(path: string, text: string): Site[] {
  return [...text.matchAll(/create (?:or replace )?function (\w+)[\s\S]*?\$\$([\s\S]*?)\$\$/gi)].flatMap((match) => {
    const [whole, name = "", body = ""] = match;
    const from = match.index + whole.length - body.length - 2;
    const tokens = tokensOf(body, from);
    return Object.entries(sqlOperators).flatMap(([operator, changeAt]) =>
      tokens
        .map((_, at) => changeAt(tokens, at, text))
        .filter((change) => change !== null)
        .map((change, at) => ({ id: `${path}, ${name}: ${operator} ${at + 1}`, file: path, change })),
    );
  });
}

const pattern =
  /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"[^"]*"|\d+(?:\.\d+)?|[a-z_]\w*|<=|>=|<>|!=|:=|::|\|\||->>?|[^\s]/gi;

function tokensOf(body: string, from: number): Token[] {
  let depth = 0;
  const tokens: Token[] = [];
  for (const match of body.matchAll(pattern)) {
    const [word] = match;
    if (/^(--|\/\*)/.test(word)) continue;
    if (word === ")" || word === "]") depth -= 1;
    const start = from + match.index;
    tokens.push({ word: word.toLowerCase(), start, end: start + word.length, depth });
    if (word === "(" || word === "[") depth += 1;
  }
  return tokens;
}

const inPlaceOf =
  (others: Readonly<Record<string, string>>): SqlOperator =>
  (tokens, at) => {
    const { word, start, end } = tokens[at]!;
    const other = Object.hasOwn(others, word) ? others[word] : undefined;
    return other === undefined ? null : { start, end, text: other };
  };

const boundaryShifted = inPlaceOf({ "<": "<=", "<=": "<", ">": ">=", ">=": ">" });
const leastForGreatest = inPlaceOf({ least: "greatest", greatest: "least" });
const sumTurned = inPlaceOf({ "+": "-", "-": "+" });

/** Adds one to a number, except where any number means the same: `select 1`, `order by 1`, `offset 0`. */
const constantOffByOne: SqlOperator = (tokens, at) => {
  const { word, start, end } = tokens[at]!;
  const isIdle = ["select", "by", "offset"].includes(tokens[at - 1]?.word ?? "");
  return /^\d+$/.test(word) && !isIdle ? { start, end, text: String(Number(word) + 1) } : null;
};

const orForAnd: SqlOperator = (tokens, at) => {
  const { word, start, end } = tokens[at]!;
  if (word === "or") return { start, end, text: "and" };
  return word === "and" && !isOfBetween(tokens, at) ? { start, end, text: "or" } : null;
};

/** Removes the text from `and` to the end of the clause, or to the next `and` or `or`. */
const predicateDropped: SqlOperator = (tokens, at) => {
  const { word, start, depth } = tokens[at]!;
  if (word !== "and" || isOfBetween(tokens, at)) return null;
  const isEnd = (other: Token, index: number) =>
    other.depth < depth || (other.depth === depth && clauses.has(other.word) && !isOfBetween(tokens, index));
  const end = tokens.findIndex((other, index) => index > at && isEnd(other, index));
  return end < 0 ? null : { start, end: tokens[end - 1]!.end, text: "" };
};

const orderReversed: SqlOperator = (tokens, at) => {
  const { word, start, end, depth } = tokens[at]!;
  if (word === "desc") return { start, end, text: "asc" };
  if (word !== "by" || tokens[at - 1]?.word !== "order") return null;
  const next = tokens.findIndex((other, index) => index > at && isEndOfKey(other, depth));
  if (next < 0 || tokens[next]!.word === "desc") return null;
  const last = tokens[next - 1]!.end;
  return { start: last, end: last, text: " desc" };
};

const fallbackDropped: SqlOperator = (tokens, at, text) => {
  const { word, start, depth } = tokens[at]!;
  if (word !== "coalesce") return null;
  const comma = tokens.findIndex((other, index) => index > at && other.word === "," && other.depth === depth + 1);
  const close = tokens.findIndex((other, index) => index > at && other.word === ")" && other.depth === depth);
  if (comma < 0 || close < 0 || comma > close) return null;
  const first = text.slice(tokens[at + 1]!.end, tokens[comma]!.start);
  return { start, end: tokens[close]!.end, text: `(${first})` };
};

const nullTurned: SqlOperator = (tokens, at) => {
  const { word, end } = tokens[at]!;
  if (word !== "is") return null;
  const next = tokens[at + 1]!;
  if (next.word === "null") return { start: end, end, text: " not" };
  return next.word === "not" && tokens[at + 2]?.word === "null" ? { start: next.start, end: next.end, text: "" } : null;
};

const existenceTurned: SqlOperator = (tokens, at) => {
  const { word, start } = tokens[at]!;
  if (word !== "exists" && word !== "found") return null;
  const before = tokens[at - 1];
  if (before?.word === "not") return { start: before.start, end: before.end, text: "" };
  return { start, end: start, text: "not " };
};

const duplicatesKept: SqlOperator = (tokens, at) => {
  const { word, start, end } = tokens[at]!;
  return word === "distinct" && tokens[at - 1]?.word === "select" && tokens[at + 1]?.word !== "on"
    ? { start, end, text: "" }
    : null;
};

/** Removes a statement of PL/pgSQL that is run for its effect. */
const statementDropped: SqlOperator = (tokens, at) => {
  const { word, start, depth } = tokens[at]!;
  const isFirst = [";", "then", "else", "loop", "begin"].includes(tokens[at - 1]?.word ?? "");
  const isAssignment = [":=", ".", "["].includes(tokens[at + 1]?.word ?? "");
  if (!isFirst || depth > 0 || !(isAssignment || /^(perform|update|insert|delete|raise)$/.test(word))) return null;
  const end = tokens.findIndex((other, index) => index >= at && other.word === ";" && other.depth === depth);
  return end < 0 ? null : { start, end: tokens[end]!.end, text: "null;" };
};

const sqlOperators: Readonly<Record<string, SqlOperator>> = {
  "boundary shifted": boundaryShifted,
  "least for greatest": leastForGreatest,
  "sum turned": sumTurned,
  "constant off by one": constantOffByOne,
  "or for and": orForAnd,
  "predicate dropped": predicateDropped,
  "order reversed": orderReversed,
  "fallback dropped": fallbackDropped,
  "null turned": nullTurned,
  "existence turned": existenceTurned,
  "duplicates kept": duplicatesKept,
  "statement dropped": statementDropped,
};

const clauses = new Set(
  "and or order group having limit offset for returning union then loop ; window on left join cross when else end do".split(
    " ",
  ),
);

/** Whether the `and` belongs to `between … and …`. */
function isOfBetween(tokens: readonly Token[], at: number): boolean {
  const { word, depth } = tokens[at]!;
  if (word !== "and") return false;
  const before = tokens
    .slice(0, at)
    .findLast((other) => other.depth === depth && /^(between|and|or|where)$/.test(other.word));
  return before?.word === "between";
}

function isEndOfKey({ word, depth }: Token, from: number): boolean {
  if (depth < from) return true;
  return depth === from && (word === "," || word === ";" || word === "desc" || clauses.has(word));
}
