/** Joins bytes that arrive in pieces. `done` is called with each piece whose memory is no longer needed. Pure. */
export class Gathering {
  #whole: Uint8Array = new Uint8Array();
  bytes = 0;

  constructor(
    readonly announced: number,
    readonly done: (piece: Uint8Array) => void,
  ) {}

  /** Adds a piece, which the caller gives up. */
  add(piece: Uint8Array): void {
    // Most bodies arrive in one piece.
    if (this.bytes === 0 && piece.byteLength >= this.announced) {
      this.#whole = piece;
      this.bytes = piece.byteLength;
      return;
    }
    this.copy(piece);
    this.done(piece);
  }

  /** Adds a piece, which the caller keeps. */
  copy(piece: Uint8Array): void {
    const before = this.bytes;
    this.bytes += piece.byteLength;
    if (this.bytes > this.#whole.byteLength) this.#grow(before);
    this.#whole.set(piece, before);
  }

  /** The bytes from index `at` to the end so far. */
  from(at: number): Uint8Array {
    return this.#whole.subarray(at, this.bytes);
  }

  /** Memory that was never written to costs nothing. */
  #grow(used: number): void {
    const smaller = this.#whole;
    this.#whole = new Uint8Array(Math.max(this.announced, this.bytes, 2 * smaller.byteLength));
    this.#whole.set(smaller.subarray(0, used));
    this.done(smaller);
  }
}
