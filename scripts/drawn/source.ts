// The input of an operator, a syntax tree with its text, and its output, changes of that text.

import type { Node, SourceFile } from "typescript/unstable/ast";

/** Replaces the text between two places of a file. */
export interface Change {
  start: number;
  end: number;
  text: string;
}

/** Returns every change that the operator makes at this node; most make one, and only at some nodes. */
export type Operator = (node: Node, source: Source) => Change[];

export class Source {
  constructor(
    readonly file: SourceFile,
    readonly text: string,
  ) {}

  /** A node's own text, without the comments before it. */
  of(node: Node): string {
    return this.text.slice(node.getStart(this.file), node.end);
  }

  replaced(node: Node, text: string): Change {
    return { start: node.getStart(this.file), end: node.end, text };
  }

  swapped(first: Node, second: Node): Change {
    const start = first.getStart(this.file);
    const between = this.text.slice(first.end, second.getStart(this.file));
    return { start, end: second.end, text: this.of(second) + between + this.of(first) };
  }
}

export function applied(text: string, { start, end, text: replacement }: Change): string {
  return text.slice(0, start) + replacement + text.slice(end);
}
