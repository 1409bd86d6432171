// Checks values against the published schema of Open Responses, in a Python process that reads one question per line
// (held.py).

import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";

export type Kind = "response" | "compaction" | "event" | "socket event" | "request" | "socket request";

export interface Schema {
  /** The objections to these values, as sentences. */
  objections(kind: Kind, ...values: readonly unknown[]): Promise<string[]>;
  stop(): void;
}

export function startSchema(python: string): Schema {
  const child = Bun.spawn([python, join(import.meta.dir, "held.py")], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = createInterface({ input: Readable.fromWeb(child.stdout as never) })[Symbol.asyncIterator]();
  async function ask(kind: Kind, value: unknown): Promise<string[]> {
    child.stdin.write(`${JSON.stringify({ kind, value })}\n`);
    await child.stdin.flush();
    const { value: line, done } = await lines.next();
    if (done) throw new Error("the process of the schema has ended");
    return JSON.parse(line) as string[];
  }
  return {
    async objections(kind, ...values) {
      const found: string[] = [];
      for (const value of values) found.push(...(await ask(kind, value)));
      return found;
    },
    stop: () => child.kill(),
  };
}
