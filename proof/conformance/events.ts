/** The events of a stream, read by the rules of server-sent events, as its clients read it. */

export interface SseMessage {
  /** The event's name; absent: it has none. */
  event?: string;
  data: string;
}

/** The events of a stream's text. An event without its blank line at the end has not arrived. */
export function messagesOf(text: string): SseMessage[] {
  const blocks = text.replace(/^\uFEFF/, "").split(/(?:\r\n|\r(?!\n)|\n){2}/);
  return blocks.slice(0, -1).flatMap(messageOf);
}

/** The event of a block, or none: an event without data is not dispatched. */
function messageOf(block: string): SseMessage[] {
  const fields = block.split(/\r\n|\r|\n/).map(fieldOf);
  const data = fields.filter(([name]) => name === "data").map(([, value]) => value);
  const event = fields.findLast(([name]) => name === "event")?.[1];
  return data.length === 0 ? [] : [{ ...(event ? { event } : {}), data: data.join("\n") }];
}

function fieldOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(":");
  if (colon < 0) return [line, ""];
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
}
