/** A buffer to which bytes are added. Pure. */
export class Bytes {
  #bytes = new Uint8Array(0);
  length = 0;

  add(bytes: Uint8Array, from = 0, to = bytes.length): void {
    this.#makeRoom(to - from);
    this.#bytes.set(bytes.subarray(from, to), this.length);
    this.length += to - from;
  }

  addText(text: string): void {
    // No UTF-16 unit takes more than three bytes.
    this.#makeRoom(text.length * 3);
    this.length += encoder.encodeInto(text, this.#bytes.subarray(this.length)).written;
  }

  take(): Uint8Array<ArrayBuffer> {
    const taken = this.#bytes.subarray(0, this.length);
    this.#bytes = new Uint8Array(0);
    this.length = 0;
    return taken;
  }

  #makeRoom(bytes: number): void {
    const needed = this.length + bytes;
    if (needed <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(needed, 2 * this.#bytes.length, least_bytes));
    larger.set(this.#bytes.subarray(0, this.length));
    this.#bytes = larger;
  }
}

const least_bytes = 256;
const encoder = new TextEncoder();
