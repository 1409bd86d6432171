/** The events of a stream, read by the rules of server-sent events, which its clients go by. */

export interface SseMessage {
  /** Absent: the event has no name. */
  event?: string;
  data: string;
}

/** An event without its blank line at the end has not come. */
export function messagesOf(text: string): SseMessage[] {
  const blocks = text.replace(/^\uFEFF/, "").split(/(?:\r\n|\r(?!\n)|\n){2}/);
  return blocks.slice(0, -1).flatMap(messageOf);
}

/** None: an event without data is not dispatched. */
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
