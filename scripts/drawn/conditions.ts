// Mutation operators on conditions: they change comparisons, and how these are combined.

import { type BinaryExpression, type Node, SyntaxKind } from "typescript/unstable/ast";
import {
  isBinaryExpression,
  isCallExpression,
  isConditionalExpression,
  isIfStatement,
  isPropertyAccessExpression,
  isWhileStatement,
} from "typescript/unstable/ast/is";
import type { Change, Operator, Source } from "./source.ts";

export const conditionNegated: Operator = (node, source) => {
  const condition = conditionOf(node);
  if (!condition) return [];
  const text = source.of(condition);
  return [source.replaced(condition, /^!\w+$/.test(text) ? text.slice(1) : `!(${text})`)];
};

export const boundaryShifted: Operator = (node, source) => signTurned(node, source, boundaries);

export const equalityTurned: Operator = (node, source) => signTurned(node, source, equalities);

export const andForOr: Operator = (node, source) => signTurned(node, source, junctions);

export const operandDropped: Operator = (node, source) => {
  if (!isBinaryExpression(node) || !junctions.has(node.operatorToken.kind)) return [];
  return [source.replaced(node, source.of(node.left)), source.replaced(node, source.of(node.right))];
};

export const everyForSome: Operator = (node, source) => {
  if (!isCallExpression(node) || !isPropertyAccessExpression(node.expression)) return [];
  const { name } = node.expression;
  const other = { every: "some", some: "every" }[source.of(name)];
  return other === undefined ? [] : [source.replaced(name, other)];
};

const boundaries = new Map<SyntaxKind, string>([
  [SyntaxKind.LessThanToken, "<="],
  [SyntaxKind.LessThanEqualsToken, "<"],
  [SyntaxKind.GreaterThanToken, ">="],
  [SyntaxKind.GreaterThanEqualsToken, ">"],
]);
const equalities = new Map<SyntaxKind, string>([
  [SyntaxKind.EqualsEqualsEqualsToken, "!=="],
  [SyntaxKind.ExclamationEqualsEqualsToken, "==="],
]);
const junctions = new Map<SyntaxKind, string>([
  [SyntaxKind.AmpersandAmpersandToken, "||"],
  [SyntaxKind.BarBarToken, "&&"],
]);

function conditionOf(node: Node): Node | null {
  if (isIfStatement(node) || isWhileStatement(node)) return node.expression;
  return isConditionalExpression(node) ? node.condition : null;
}

/** Replaces the operator of a binary expression, such as `<`, by another one. */
export function signTurned(node: Node, source: Source, others: ReadonlyMap<SyntaxKind, string>): Change[] {
  if (!isBinaryExpression(node)) return [];
  const { operatorToken } = node as BinaryExpression;
  const other = others.get(operatorToken.kind);
  return other === undefined ? [] : [source.replaced(operatorToken, other)];
}
