/**
 * Cuts a text or bytes into pieces, any of which may be empty. The places are positions, modulo the length plus one.
 * Pieces of bytes are views of the whole, as those that a socket brings.
 */
export function cutAt<Whole extends string | Uint8Array>(whole: Whole, places: readonly number[]): Whole[] {
  const inside = places.map((place) => place % (whole.length + 1)).sort((one, other) => one - other);
  const piece = (from: number, to: number) =>
    typeof whole === "string" ? whole.slice(from, to) : whole.subarray(from, to);
  return [...inside, whole.length].map((end, index) => piece(inside[index - 1] ?? 0, end) as Whole);
}
