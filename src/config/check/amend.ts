/**
 * Adds rows to the text of a sluice.yaml. Every line of the operator stays, comments included: new text goes between
 * the old, and the result is parsed again and compared, value by value. Pure.
 */
import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, parseDocument, type YAMLMap, type YAMLSeq } from "yaml";
import type { Path } from "../../core/schema/walk.ts";

export interface Addition {
  /** The path of the mapping or list to which the row is added. */
  path: Path;
  /** The name of the row. Null: the row is an item of a list. */
  name: string | null;
  value: unknown;
  /** The lines of a value that is written as a block, without indentation. Absent: the value is written on one line. */
  block?: readonly string[];
}

/** The text with these rows added. Throws an Error if the file is written in a way that has no place for a row. */
export function amended(text: string, additions: readonly Addition[]): string {
  let result = text;
  for (const addition of additions) {
    const before = parsed(result);
    const next = added(result, addition);
    const wanted = withAddition(before.toJS(), addition);
    if (!Bun.deepEquals(parsed(next).toJS(), wanted)) throw byHand(addition);
    result = next;
  }
  return result;
}

function parsed(text: string) {
  const document = parseDocument(text, { logLevel: "error" });
  if (document.errors.length > 0) throw new Error("sluice.yaml is no YAML; correct it first");
  return document;
}

function byHand({ path, name, value }: Addition): Error {
  const where = [...path, ...(name === null ? [] : [name])].join(".");
  return new Error(`sluice.yaml has no plain place for ${where}: add it by hand, as ${JSON.stringify(value)}`);
}

function withAddition(root: unknown, { path, name, value }: Addition): unknown {
  const around = path.reduce<unknown>((at, step) => Object(at)[step], root);
  if (name === null) (around as unknown[]).push(value);
  else Object(around)[name] = value;
  return root;
}

function added(text: string, addition: Addition): string {
  const { path, name } = addition;
  const node = parsed(text).getIn(path, true) as Node | undefined;
  const fits = !isAlias(node) && (name === null ? isSeq(node) : isMap(node));
  if (!fits || !node?.range) throw byHand(addition);
  const collection = node as YAMLMap<Node, Node | null> | YAMLSeq<Node>;
  const last = collection.items.at(-1);
  if (collection.flow || !last) return inFlow(text, collection, addition);
  const first = collection.items[0]!;
  const start = isPair(first) ? first.key.range : (first as Node).range;
  const end = endOf(last);
  if (!start || end === null) throw byHand(addition);
  const indent = indentOf(text, isPair(first) ? start[0] : text.lastIndexOf("-", start[0] - 1));
  return afterLine(text, end, blockLines(addition, indent));
}

/** The column of this position, which is the indentation of the mapping that begins there. */
function indentOf(text: string, at: number): string {
  return " ".repeat(at - (text.lastIndexOf("\n", at - 1) + 1));
}

function blockLines({ name, value, block }: Addition, indent: string): string[] {
  const head = name === null ? "- " : `${name}:`;
  if (!block) return [`${indent}${head}${name === null ? "" : " "}${flow(value)}`];
  if (name === null) return block.map((line, at) => indent + (at === 0 ? head : "  ") + line);
  return [indent + head, ...block.map((line) => `${indent}  ${line}`)];
}

/** Adds lines after the line in which the last value ends, so that a comment stays beside its value. */
function afterLine(text: string, end: number, lines: readonly string[]): string {
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const inside = text[end - 1] === "\n" ? end - 1 : end;
  const found = text.indexOf("\n", inside);
  const at = found < 0 ? text.length : found + 1;
  const gap = found < 0 && text !== "" ? newline : "";
  return text.slice(0, at) + gap + lines.map((line) => line + newline).join("") + text.slice(at);
}

function inFlow(text: string, node: YAMLMap<Node, Node | null> | YAMLSeq<Node>, addition: Addition): string {
  const { name, value } = addition;
  const last = node.items.at(-1);
  const end = last === undefined ? node.range![0] + 1 : endOf(last);
  if (!node.flow || end === null) throw byHand(addition);
  const written = name === null ? flow(value) : `${name}: ${flow(value)}`;
  const isOpen = last === undefined && text[end] !== " " && name !== null;
  const piece = last === undefined ? (isOpen ? ` ${written} ` : ` ${written}`) : `, ${written}`;
  return text.slice(0, end) + (name === null && last === undefined ? written : piece) + text.slice(end);
}

/** The offset in the text at which the last value of this node ends; null if it cannot be told. */
function endOf(item: Node | Pair<Node, Node | null>): number | null {
  const node = isPair(item) ? (item.value ?? item.key) : item;
  if (!isScalar(node) && !isAlias(node) && !(isMap(node) || isSeq(node))) return null;
  if ((isMap(node) || isSeq(node)) && !node.flow && node.items.length > 0) {
    return endOf(node.items.at(-1) as Node | Pair<Node, Node | null>);
  }
  return node.range?.[1] ?? null;
}

function isPair(item: unknown): item is Pair<Node, Node | null> {
  return typeof item === "object" && item !== null && "key" in item;
}

/** A value on one line. JSON is valid YAML; words are written without quotes. */
export function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const rows = Object.entries(value).map(([name, one]) => `${name}: ${flow(one)}`);
    return rows.length === 0 ? "{}" : `{ ${rows.join(", ")} }`;
  }
  return typeof value === "string" &&
    /^[a-z][a-z_.]*$/.test(value) &&
    !/^(true|false|null|yes|no|on|off|y|n)$/.test(value)
    ? value
    : JSON.stringify(value);
}

/**
 * Shows an amendment: each added line with `+`, and each line to which a row was added, before (`-`) and after (`+`).
 */
export function difference(before: string, after: string): string[] {
  const [old, now] = [before, after].map((text) => text.replace(/\r?\n$/, "").split(/\r?\n/)) as [string[], string[]];
  const lines: string[] = [];
  let at = 0;
  for (const line of now) {
    if (line === old[at]) at++;
    else if (!isWithin(old[at], line)) lines.push(`+ ${line}`);
    else lines.push(`- ${old[at++]}`, `+ ${line}`);
  }
  return lines;
}

/** Whether the new line is the old one with a row added: all characters of the old one are in it, in order. */
function isWithin(old: string | undefined, now: string): boolean {
  if (old === undefined || old.trim() === "" || old.length >= now.length) return false;
  let at = 0;
  for (const character of now) if (character === old[at]) at++;
  return at === old.length && now.trimStart().startsWith(old.trimStart().slice(0, 4));
}
