/** Cuts a text or bytes into pieces, any of which may be empty. The places are positions modulo the length. */
export function cutAt<Whole extends string | Uint8Array>(whole: Whole, places: readonly number[]): Whole[] {
  const inside = places.map((place) => place % (whole.length + 1)).sort((one, other) => one - other);
  return [...inside, whole.length].map((end, index) => whole.slice(inside[index - 1] ?? 0, end) as Whole);
}
