import { plain } from "../../core/inference/plain-text.ts";

/** The output of the CLI, and the properties of the screen. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** The width of the screen in columns; null if there is no screen (a pipe, a file), so nothing has to fit. */
  width: number | null;
  color: boolean;
  /** Whether prompts work: input and output are both a terminal. */
  interactive: boolean;
}

/**
 * This process's own terminal. It is not an error if the reader of a pipe ends early (`| head`) or the terminal is
 * closed.
 */
export function processTerminal(environment: Readonly<Record<string, string | undefined>>): Terminal {
  const { stdin, stdout, stderr } = process;
  for (const stream of [stdout, stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
    });
  }
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    width: stdout.isTTY ? stdout.columns || 80 : null,
    color: stdout.isTTY === true && !environment.NO_COLOR && environment.TERM !== "dumb",
    // Some consoles report a width of 0, with which prompts would print one character a line.
    interactive: stdin.isTTY === true && stdout.isTTY === true && stdout.columns > 0,
  };
}

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const;

export function painted(terminal: Terminal, color: keyof typeof codes, text: string): string {
  return terminal.color && text ? `\u001b[${codes[color]}m${text}\u001b[0m` : text;
}

/**
 * The text on one line, without control characters, which could move the cursor: for messages that quote other text.
 */
export function oneLine(text: string): string {
  return plain(text.replace(/:\s*[\r\n]+\s*/g, ": ").replace(/\s*[\r\n]+\s*/g, "; ")).trim();
}
