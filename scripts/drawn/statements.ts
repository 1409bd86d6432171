// Mutation operators on statements: they remove or swap them, remove awaits, and change returned values.

import { type Node, SyntaxKind } from "typescript/unstable/ast";
import {
  isArrowFunction,
  isAwaitExpression,
  isBlock,
  isBreakStatement,
  isContinueStatement,
  isExpressionStatement,
  isFunctionDeclaration,
  isMethodDeclaration,
  isReturnStatement,
  isThrowStatement,
} from "typescript/unstable/ast/is";
import type { Change, Operator, Source } from "./source.ts";

export const awaitDropped: Operator = (node, source) =>
  isAwaitExpression(node) ? [source.replaced(node, source.of(node.expression))] : [];

export const statementDropped: Operator = (node, source) =>
  isExpressionStatement(node) || isThrowStatement(node) ? [source.replaced(node, ";")] : [];

/** Swaps two statements if one of them contains a call. For other statements, the order seldom matters. */
export const statementsSwapped: Operator = (node, source) => {
  if (!isBlock(node)) return [];
  const statements = [...node.statements];
  return statements.slice(1).flatMap((second, at) => {
    const first = statements[at]!;
    const isOrdered = [first, second].every(isExpressionStatement) && [first, second].some((one) => calls(one, source));
    return isOrdered ? [source.swapped(first, second)] : [];
  });
};

export const returnedEarly: Operator = (node, source) => {
  const isFunction = isFunctionDeclaration(node) || isMethodDeclaration(node) || isArrowFunction(node);
  if (!isFunction || !node.body || !isBlock(node.body) || node.body.statements.length === 0) return [];
  const start = node.body.getStart(source.file) + 1;
  return [{ start, end: start, text: " return;" }];
};

export const nothingReturned: Operator = (node, source) => answered(node, source, ["null", "undefined"]);

export const emptyReturned: Operator = (node, source) => answered(node, source, ["[]", '""', "0"]);

export const truthReturned: Operator = (node, source) => answered(node, source, ["true", "false"]);

export const loopLeft: Operator = (node, source) => {
  if (isContinueStatement(node)) return [source.replaced(node, "break;")];
  return isBreakStatement(node) ? [source.replaced(node, "continue;")] : [];
};

function answered(node: Node, source: Source, others: readonly string[]): Change[] {
  const value = isReturnStatement(node)
    ? node.expression
    : isArrowFunction(node) && !isBlock(node.body)
      ? node.body
      : undefined;
  if (!value) return [];
  const text = source.of(value);
  return others.filter((other) => other !== text).map((other) => source.replaced(value, other));
}

function calls(node: Node, source: Source): boolean {
  return node.kind === SyntaxKind.ExpressionStatement && source.of(node).includes("(");
}
