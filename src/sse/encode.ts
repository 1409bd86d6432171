/** Messages → the text of an event stream, LF line ends. Whoever writes it writes one frame at a time, whole. */
import type { SseMessage } from "./message.ts";

/**
 * One frame, its blank line included. Line breaks in `data` (CR, LF or both) become several `data` lines, which a
 * reader joins with LF. Throws when `event` holds a line break: names are ours, so that would be a defect, and written
 * as it stands it would forge fields.
 */
export function encodeSse(message: SseMessage): string {
  const data = breaks.test(message.data) ? message.data.split(breaks).join("\ndata: ") : message.data;
  if (message.event === undefined) return `data: ${data}\n\n`;
  if (breaks.test(message.event)) throw new Error("The name of a server-sent event cannot hold a line break.");
  return `event: ${message.event}\ndata: ${data}\n\n`;
}

/** A comment frame, which every client passes over: it keeps a silent connection alive. */
export function comment(text: string): string {
  return `: ${text.split(breaks).join("\n: ")}\n\n`;
}

const breaks = /\r\n|\r|\n/;
