/** Writes the frames of an event stream, with LF line ends. A frame must not be split. */
import type { SseMessage } from "./message.ts";

/**
 * One frame, with its blank line. Line breaks in `data` (CR, LF or both) begin another `data` line; readers join the
 * lines with LF. Throws an Error if `event` has a line break, which could forge fields: the names are this program's
 * own, so that is a defect.
 */
export function encodeSse(message: SseMessage): string {
  const data =
    !message.isOneLine && breaks.test(message.data) ? message.data.split(breaks).join("\ndata: ") : message.data;
  if (message.event === undefined) return `data: ${data}\n\n`;
  if (breaks.test(message.event)) throw new Error("The name of a server-sent event cannot hold a line break.");
  return `event: ${message.event}\ndata: ${data}\n\n`;
}

/** A comment frame, which every client ignores, and which keeps a silent connection alive. */
export function comment(text: string): string {
  return `: ${text.split(breaks).join("\n: ")}\n\n`;
}

const breaks = /\r\n|\r|\n/;
