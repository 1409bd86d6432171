// The interface of a mutation operator: its input is a syntax tree with its text, its output is changes of that text.

import type { Node, SourceFile } from "typescript/unstable/ast";

/** Replaces the text between two positions of a file. */
export interface Change {
  start: number;
  end: number;
  text: string;
}

/** Returns the changes that the operator can make at this node: usually none or one. */
export type Operator = (node: Node, source: Source) => Change[];

export class Source {
  constructor(
    readonly file: SourceFile,
    readonly text: string,
  ) {}

  /** The node's own text, without the comments before it. */
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
