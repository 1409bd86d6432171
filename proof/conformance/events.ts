/** Parses an event stream by the rules of server-sent events, as clients do. */

export interface SseMessage {
  /** The event's name; absent if it has none. */
  event?: string;
  data: string;
}

/** The events in the text of a stream. An event without a blank line at its end is incomplete, and is left out. */
export function messagesOf(text: string): SseMessage[] {
  const blocks = text.replace(/^\uFEFF/, "").split(/(?:\r\n|\r(?!\n)|\n){2}/);
  return blocks.slice(0, -1).flatMap(messageOf);
}

/** The event of a block; none if the block has no data, because clients ignore such an event. */
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
