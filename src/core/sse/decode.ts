/**
 * Decodes an event stream by the grammar of the HTML standard (section 9.2.6).
 *
 * Lines are split in the bytes, not in decoded text. Line breaks are ASCII, so no character is split between lines, a
 * text decoder needs no state between chunks, and sizes are exact. Every byte is read a fixed number of times, so
 * neither single-byte chunks nor one endless line cost more than linear time.
 *
 * Also writes the frames of an event stream, with LF line ends. A frame must not be split.
 */

/** One server-sent event. `event` is absent in protocols that do not name their events. */
export interface SseMessage {
  event?: string;
  data: string;
  /** Set if the data, which may be long, is known to have no line break, so that it need not be searched for one. */
  isOneLine?: true;
}

const lf = 10;
const cr = 13;
const space = 32;
const colon = 58;
const dataField = new Uint8Array([0x64, 0x61, 0x74, 0x61]);
const dataStart = new Uint8Array([...dataField, colon]);
const eventField = new Uint8Array([0x65, 0x76, 0x65, 0x6e, 0x74]);
const byteOrderMark = new Uint8Array([0xef, 0xbb, 0xbf]);

/** A line buffer above this size is released when its line has been read. */
const kept_bytes_max = 64 * 1024;

interface SseLimits {
  /** The most bytes in the `data` and `event` lines of one message, including the unfinished line. */
  frame_bytes_max: number;
}

export const sseLimits: SseLimits = { frame_bytes_max: 8 * 1024 * 1024 };

/** Thrown if a message is larger than the limit. The decoder accepts no more bytes. */
export class SseOverflow extends Error {
  override name = "SseOverflow";
  constructor(readonly frame_bytes_max: number) {
    super(`A server-sent event is larger than the limit of ${frame_bytes_max} bytes.`);
  }
}

/**
 * An incremental decoder of one stream. The caller may reuse a chunk once `push` has returned.
 *
 * Comments, `id` and `retry` are skipped: no protocol here uses them. If an event's name comes before its data, and
 * `reads` does not accept the name, the data is neither kept nor decoded: it is "".
 */
export class SseDecoder {
  readonly #limits: SseLimits;
  readonly #reads: (event: string) => boolean;
  #line = new Uint8Array(256);
  #line_bytes = 0;
  #data: string[] = [];
  #event = "";
  #isUnread = false;
  #held_bytes = 0;
  #atHead = true;
  #afterCr = false;
  #overflow: SseOverflow | null = null;
  #values = 0;
  #chunkText = "";

  constructor(limits: SseLimits = sseLimits, reads: (event: string) => boolean = () => true) {
    this.#limits = limits;
    this.#reads = reads;
  }

  /** Whether the bytes so far end at the end of a message. */
  get isBetween(): boolean {
    const isBegun = this.#atHead || this.#afterCr || this.#line_bytes > 0;
    return !isBegun && this.#data.length === 0 && this.#event === "" && !this.#overflow;
  }

  /** The number of bytes of the unfinished message. */
  get held_bytes(): number {
    return this.#held_bytes + this.#line_bytes;
  }

  /**
   * The messages that these bytes complete, in order.
   *
   * Throws SseOverflow, and nothing else. Messages that were complete before the overflow are still returned; the next
   * call then throws.
   */
  push(bytes: Uint8Array): SseMessage[] {
    if (this.#overflow) throw this.#overflow;
    const messages: SseMessage[] = [];
    let start = 0;
    // A CR ends a line at once, so that its message is not delayed; an LF that follows is skipped.
    if (this.#afterCr && bytes.length > 0) {
      this.#afterCr = false;
      if (bytes[0] === lf) start = 1;
    }
    this.#values = 0;
    let nextLf = nextByte(bytes, lf, start);
    let nextCr = nextByte(bytes, cr, start);
    while (!this.#overflow) {
      if (nextLf < start) nextLf = nextByte(bytes, lf, start);
      if (nextCr < start) nextCr = nextByte(bytes, cr, start);
      const end = Math.min(nextLf, nextCr);
      if (end === bytes.length) {
        this.#keep(bytes, start, end);
        break;
      }
      this.#endLine(bytes, start, end, messages);
      start = end + 1;
      if (bytes[end] === cr) {
        if (start === bytes.length) this.#afterCr = true;
        else if (bytes[start] === lf) start += 1;
      }
    }
    this.#chunkText = "";
    if (this.#overflow && messages.length === 0) throw this.#overflow;
    return messages;
  }

  /**
   * Call it when the stream has ended. `unfinished`: whether the stream ended inside a message, which is then dropped,
   * as the standard asks: a sender that was cut off must not look like one that finished.
   */
  end(): { unfinished: boolean } {
    if (this.#overflow) throw this.#overflow;
    return { unfinished: this.#line_bytes > 0 || this.#data.length > 0 };
  }

  #keep(bytes: Uint8Array, start: number, end: number): void {
    const line_bytes = this.#line_bytes + end - start;
    if (this.#isTooMuch(line_bytes) || end === start) return;
    if (this.#leavesOut(bytes, start, end)) {
      // If a line's data is left out, only the name of the field is kept, so that the rest of the line is
      // recognized.
      if (this.#line_bytes === 0) this.#line.set(dataStart);
      this.#line_bytes = line_bytes;
      return;
    }
    if (line_bytes > this.#line.length) {
      // `transfer` releases the memory of the smaller buffer at once.
      this.#line = new Uint8Array(this.#line.buffer.transfer(Math.max(line_bytes, this.#line.length * 2)));
    }
    Buffer.prototype.copy.call(bytes, this.#line, this.#line_bytes, start, end);
    this.#line_bytes = line_bytes;
  }

  /** Whether these bytes continue or begin a `data` line of an event that is not read. */
  #leavesOut(bytes: Uint8Array, start: number, end: number): boolean {
    if (!this.#isUnread) return false;
    if (this.#line_bytes === 0) return startsWith(bytes, start, end, dataStart);
    return startsWith(this.#line, 0, this.#line_bytes, dataStart);
  }

  #endLine(bytes: Uint8Array, start: number, end: number, messages: SseMessage[]): void {
    if (this.#line_bytes === 0) {
      if (!this.#isTooMuch(end - start)) this.#readLine(bytes, start, end, messages);
      return;
    }
    this.#keep(bytes, start, end);
    if (this.#overflow) return;
    this.#readLine(this.#line, 0, this.#line_bytes, messages);
    this.#line_bytes = 0;
    if (this.#line.length > kept_bytes_max) this.#line = new Uint8Array(this.#line.buffer.transfer(256));
  }

  #isTooMuch(line_bytes: number): boolean {
    if (line_bytes === 0 || this.#held_bytes + line_bytes <= this.#limits.frame_bytes_max) return false;
    this.#overflow = new SseOverflow(this.#limits.frame_bytes_max);
    return true;
  }

  #readLine(bytes: Uint8Array, from: number, end: number, messages: SseMessage[]): void {
    let start = from;
    if (this.#atHead) {
      this.#atHead = false;
      if (startsWith(bytes, start, end, byteOrderMark)) start += byteOrderMark.length;
    }
    if (start === end) {
      this.#dispatch(messages);
      return;
    }
    const data = valueStart(bytes, start, end, dataField);
    if (data >= 0) {
      if (this.#isUnread) this.#data = [""];
      else this.#data.push(this.#value(bytes, data, end));
      // The line break counts too, so that an endless series of empty lines is bounded as well.
      this.#held_bytes += end - start + 1;
      return;
    }
    const event = valueStart(bytes, start, end, eventField);
    if (event < 0) return;
    this.#event = this.#value(bytes, event, end);
    this.#isUnread = !this.#reads(this.#event);
    this.#held_bytes += end - start + 1;
  }

  /**
   * The text of a field's value. In a chunk with several lines, it is twice as fast to decode the chunk once and to
   * slice the text. Offsets in text and bytes are equal if the lengths are, because no character has more code units
   * than bytes.
   */
  #value(bytes: Uint8Array, start: number, end: number): string {
    if (bytes !== this.#line) {
      this.#values += 1;
      if (this.#values === 2) this.#chunkText = textOf(bytes, 0, bytes.length);
      if (this.#values >= 2 && this.#chunkText.length === bytes.length) return this.#chunkText.slice(start, end);
    }
    return textOf(bytes, start, end);
  }

  #dispatch(messages: SseMessage[]): void {
    if (this.#data.length > 0) {
      const data = this.#data.length === 1 ? this.#data[0]! : this.#data.join("\n");
      messages.push(this.#event === "" ? { data } : { event: this.#event, data });
      this.#data = [];
    }
    this.#event = "";
    this.#isUnread = false;
    this.#held_bytes = 0;
  }
}

/**
 * Decodes UTF-8 like a TextDecoder that keeps each U+FEFF, but makes no typed-array view of the part:
 * docs/design/runtime.md, Towards engines.
 */
function textOf(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.prototype.toString.call(bytes, "utf8", start, end);
}

/** The index of the next occurrence of `byte`, or the length of `bytes` if there is none. */
function nextByte(bytes: Uint8Array, byte: number, start: number): number {
  const at = bytes.indexOf(byte, start);
  return at < 0 ? bytes.length : at;
}

function startsWith(bytes: Uint8Array, start: number, end: number, prefix: Uint8Array): boolean {
  if (end - start < prefix.length) return false;
  for (let at = 0; at < prefix.length; at++) if (bytes[start + at] !== prefix[at]) return false;
  return true;
}

/** The start of this field's value, after the one space that may precede it, or -1 if the line is another field's. */
function valueStart(bytes: Uint8Array, start: number, end: number, field: Uint8Array): number {
  if (!startsWith(bytes, start, end, field)) return -1;
  const after = start + field.length;
  if (after === end) return end;
  if (bytes[after] !== colon) return -1;
  return bytes[after + 1] === space && after + 1 < end ? after + 2 : after + 1;
}

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
