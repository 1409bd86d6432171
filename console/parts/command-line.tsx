/** The command that does the same as this page. */
import { entryOf } from "../core/client.ts";
import { commandLine } from "../core/command-line.ts";
import { Copy } from "./copy.tsx";

export function CommandLine({ verb, input, text }: { verb?: string; input?: Record<string, unknown>; text?: string }) {
  const command = verb ? entryOf(verb)?.command : null;
  const line = text ?? (command ? commandLine(command, input ?? {}) : null);
  if (line === null) return null;
  return (
    <div class="command">
      <code>{line}</code>
      <Copy text={line} label="Copy command" />
    </div>
  );
}
