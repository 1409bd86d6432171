/** The command that does the same as this page. */
import { entryOf } from "../core/client.ts";
import { commandLine } from "../core/command-line.ts";
import { Copy } from "./copy.tsx";

export function CommandLine({ verb, input, text }: { verb?: string; input?: Record<string, unknown>; text?: string }) {
  const line = text ?? (verb ? lineOf(verb, input ?? {}) : null);
  if (line === null) return null;
  return (
    <div class="command">
      <code>
        {line.split(/(?<= )/).map((word, at) => (
          <span key={at} class="word">
            {word}
          </span>
        ))}
      </code>
      <Copy text={line} label="Copy command" />
    </div>
  );
}

function lineOf(verb: string, input: Record<string, unknown>): string | null {
  const command = entryOf(verb)?.command;
  return command ? commandLine(command, input) : null;
}
