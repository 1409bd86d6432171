// Records which parts of a file run: divides it into parts (functions, blocks, branches), and inserts a counter at the
// start of each. Pure.

import { type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import {
  isArrowFunction,
  isBinaryExpression,
  isBlock,
  isCaseClause,
  isConditionalExpression,
  isDefaultClause,
  isDoStatement,
  isForInStatement,
  isForOfStatement,
  isForStatement,
  isIfStatement,
  isTypeNode,
  isWhileStatement,
} from "typescript/unstable/ast/is";
import type { Change } from "./source.ts";

/** A part of a file: code that starts to run at one position. */
export interface Part {
  start: number;
  end: number;
  kind: "file" | "block" | "statement" | "branch" | "expression";
}

/**
 * The parts of a file: first the whole file, then its blocks, statements and branches, each before the parts within it.
 */
export function partsOf(file: SourceFile, text: string): Part[] {
  const parts: Part[] = [{ start: 0, end: text.length, kind: "file" }];
  const add = (node: Node, kind: Part["kind"]) => parts.push({ start: node.getStart(file), end: node.end, kind });
  const visit = (node: Node): void => {
    if (isTypeNode(node)) return;
    const kind = kindOf(node);
    if (kind !== null) add(node, kind);
    node.forEachChild(visit);
  };
  file.forEachChild(visit);
  return parts;
}

/** The index of the innermost part that contains the whole change. */
export function partOf(parts: readonly Part[], { start, end }: Pick<Change, "start" | "end">): number {
  return parts.findLastIndex((part) => part.start <= start && end <= part.end);
}

/** The file's text with a call of the counter (`counter.ts`) in each part. */
export function countedText(path: string, text: string, parts: readonly Part[]): string {
  const up = "../".repeat(path.split("/").length - 1);
  const head = `import { counter as __counter } from "${up}scripts/drawn/counter.ts"; const __ran = __counter("${path}", ${parts.length}); __ran(0);`;
  const insertions = parts.slice(1).flatMap((part, at) => insertionsOf(part, at + 1));
  // At the same position, insertions that close a part come first, the inner part's before the outer's; then those that
  // open a part, the outer's before the inner's.
  insertions.sort((a, b) => a.at - b.at || a.order - b.order);
  let done = 0;
  const pieces = insertions.flatMap(({ at, text: inserted }) => {
    const before = text.slice(done, at);
    done = at;
    return [before, inserted];
  });
  return head + pieces.join("") + text.slice(done);
}

interface Insertion {
  at: number;
  text: string;
  order: number;
}

function insertionsOf({ start, end, kind }: Part, number: number): Insertion[] {
  const call = `__ran(${number})`;
  const opening = (at: number, text: string): Insertion => ({ at, text, order: number });
  const closing = (text: string): Insertion => ({ at: end, text, order: -number });
  switch (kind) {
    case "file":
      return [];
    case "block":
      return [opening(start + 1, ` ${call};`)];
    case "statement":
      return [opening(start, `${call}; `)];
    case "branch":
      return [opening(start, `{ ${call}; `), closing(" }")];
    case "expression":
      return [opening(start, `(${call}, `), closing(")")];
  }
}

function kindOf(node: Node): Part["kind"] | null {
  if (isBlock(node)) return "block";
  const { parent } = node;
  if (isBlock(parent)) return parent.statements[0] === node ? null : "statement";
  if (isCaseClause(parent) || isDefaultClause(parent))
    return parent.statements.includes(node as never) ? "statement" : null;
  if (isBranch(node, parent)) return "branch";
  return isBranchOfExpression(node, parent) ? "expression" : null;
}

/** Whether the node is a body without braces of a condition or a loop. */
function isBranch(node: Node, parent: Node): boolean {
  if (isIfStatement(parent)) return parent.thenStatement === node || parent.elseStatement === node;
  const isLoop =
    isForStatement(parent) ||
    isForOfStatement(parent) ||
    isForInStatement(parent) ||
    isWhileStatement(parent) ||
    isDoStatement(parent);
  return isLoop && parent.statement === node;
}

function isBranchOfExpression(node: Node, parent: Node): boolean {
  if (isArrowFunction(parent)) return parent.body === node;
  if (isConditionalExpression(parent)) return parent.whenTrue === node || parent.whenFalse === node;
  return isBinaryExpression(parent) && junctions.has(parent.operatorToken.kind) && parent.right === node;
}

const junctions = new Set([
  SyntaxKind.AmpersandAmpersandToken,
  SyntaxKind.BarBarToken,
  SyntaxKind.QuestionQuestionToken,
]);
