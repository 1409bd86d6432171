// Mutation operators on values: constants, sums, lists, fallbacks for missing values, and the order of arguments.

import { SyntaxKind } from "typescript/unstable/ast";
import {
  isArrayLiteralExpression,
  isBinaryExpression,
  isCallExpression,
  isNewExpression,
  isNumericLiteral,
  isPostfixUnaryExpression,
  isPropertyAccessExpression,
  isStringLiteral,
} from "typescript/unstable/ast/is";
import { signTurned } from "./conditions.ts";
import type { Operator } from "./source.ts";

export const fallbackDropped: Operator = (node, source) => {
  if (!isBinaryExpression(node) || node.operatorToken.kind !== SyntaxKind.QuestionQuestionToken) return [];
  return [source.replaced(node, source.of(node.left)), source.replaced(node, source.of(node.right))];
};

/**
 * Adds one to a number, but only to counts and bounds: the exact value of a time or a size, such as `96 * 1024`, seldom
 * matters.
 */
export const constantOffByOne: Operator = (node, source) => {
  if (!isNumericLiteral(node)) return [];
  const { parent } = node;
  if (isBinaryExpression(parent) && parent.operatorToken.kind === SyntaxKind.AsteriskToken) return [];
  const value = Number(source.of(node).replaceAll("_", ""));
  return Number.isInteger(value) && value < 1000 ? [source.replaced(node, String(value + 1))] : [];
};

export const truthTurned: Operator = (node, source) => {
  if (node.kind === SyntaxKind.TrueKeyword) return [source.replaced(node, "false")];
  return node.kind === SyntaxKind.FalseKeyword ? [source.replaced(node, "true")] : [];
};

export const sumTurned: Operator = (node, source) => {
  if (isPostfixUnaryExpression(node)) {
    const text = source.of(node);
    return [source.replaced(node, text.slice(0, -2) + (text.endsWith("++") ? "--" : "++"))];
  }
  return signTurned(node, source, sums);
};

export const leastForGreatest: Operator = (node, source) => {
  if (!isPropertyAccessExpression(node)) return [];
  const other = { "Math.min": "Math.max", "Math.max": "Math.min" }[source.of(node)];
  return other === undefined ? [] : [source.replaced(node, other)];
};

/** Empties a string, but only one that a program compares or passes on, not a message for people. */
export const textEmptied: Operator = (node, source) => {
  if (!isStringLiteral(node) || node.text === "" || node.text.includes(" ")) return [];
  const { parent } = node;
  const isUsed = (isCallExpression(parent) && parent.expression !== node) || isBinaryExpression(parent);
  return isUsed ? [source.replaced(node, '""')] : [];
};

export const listEmptied: Operator = (node, source) =>
  isArrayLiteralExpression(node) && node.elements.length > 0 ? [source.replaced(node, "[]")] : [];

export const argumentsSwapped: Operator = (node, source) => {
  if (!isCallExpression(node) && !isNewExpression(node)) return [];
  if (commutative.has(source.of(node.expression))) return [];
  const given = [...(node.arguments ?? [])];
  return given.slice(1).flatMap((second, at) => {
    const first = given[at]!;
    return source.of(first) === source.of(second) ? [] : [source.swapped(first, second)];
  });
};

const commutative = new Set(["Math.max", "Math.min", "and", "eq", "or"]);

const sums = new Map<SyntaxKind, string>([
  [SyntaxKind.PlusToken, "-"],
  [SyntaxKind.MinusToken, "+"],
  [SyntaxKind.AsteriskToken, "/"],
  [SyntaxKind.SlashToken, "*"],
  [SyntaxKind.PlusEqualsToken, "-="],
  [SyntaxKind.MinusEqualsToken, "+="],
]);
