// Finds all mutants of a file. Each has an ID that does not change when other functions of the file are edited.

import type { Node, SourceFile } from "typescript/unstable/ast";
import {
  isCallExpression,
  isClassDeclaration,
  isExportDeclaration,
  isFunctionDeclaration,
  isGetAccessorDeclaration,
  isImportDeclaration,
  isMethodDeclaration,
  isNewExpression,
  isPropertyAssignment,
  isSetAccessorDeclaration,
  isThrowStatement,
  isTypeNode,
  isVariableDeclaration,
} from "typescript/unstable/ast/is";
import { operators } from "./operators.ts";
import { type Change, Source } from "./source.ts";

/**
 * A mutant. Its ID, such as `src/a.ts, Class.method: boundary shifted 2`, says that it is the second change of this
 * kind in that function.
 */
export interface Site {
  id: string;
  file: string;
  change: Change;
}

export function sitesOf(path: string, file: SourceFile, text: string): Site[] {
  const source = new Source(file, text);
  const counts = new Map<string, number>();
  const found: Site[] = [];
  const visit = (node: Node, scope: readonly string[]): void => {
    if (isUnread(node, source)) return;
    const name = nameOf(node, source);
    const inside = name === null ? scope : [...scope, name];
    for (const [operator, changes] of Object.entries(operators)) {
      if (isThrown(node) && operator !== "statement dropped") continue;
      for (const change of changes(node, source)) {
        const kind = `${path}, ${inside.join(".") || "the file"}: ${operator}`;
        const ordinal = (counts.get(kind) ?? 0) + 1;
        counts.set(kind, ordinal);
        found.push({ id: `${kind} ${ordinal}`, file: path, change });
      }
    }
    if (!isThrown(node)) node.forEachChild((child) => visit(child, inside));
  };
  visit(file, []);
  return found;
}

/** Whether the node is never executed (types, imports), or contains only text for people. */
function isUnread(node: Node, source: Source): boolean {
  if (isTypeNode(node) || isImportDeclaration(node) || isExportDeclaration(node)) return true;
  if (isPropertyAssignment(node)) return /^(description|summary|title|help|message)$/.test(source.of(node.name));
  if (isNewExpression(node)) return /^(\w*Error|Fault)$/.test(source.of(node.expression));
  return isCallExpression(node) && /(^|\.)(log|console|debug|info|warn|describe)\b/.test(source.of(node.expression));
}

/** Whether the node is a throw statement, whose error has a message for people, and is not mutated. */
function isThrown(node: Node): boolean {
  return isThrowStatement(node);
}

function nameOf(node: Node, source: Source): string | null {
  const isNamed =
    isFunctionDeclaration(node) ||
    isMethodDeclaration(node) ||
    isClassDeclaration(node) ||
    isGetAccessorDeclaration(node) ||
    isSetAccessorDeclaration(node) ||
    isVariableDeclaration(node);
  return isNamed && node.name ? source.of(node.name).replaceAll(/\s+/g, " ").slice(0, 40) : null;
}
