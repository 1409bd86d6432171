/** Did you mean…? */

/** `; did you mean 'x'?` for the known name that is nearest to a mistyped one, or nothing where none is near. */
export function didYouMean(written: string, known: Iterable<string>): string {
  const nearest = closest(written, known);
  return nearest === null ? "" : `; did you mean '${nearest}'?`;
}

/** At most one edit for every three letters, and never more than three: a wilder guess misleads. */
export function closest(written: string, known: Iterable<string>): string | null {
  if (written.length > 64) return null;
  let best: { name: string; edits: number } | null = null;
  for (const name of known) {
    const allowed = Math.min(3, Math.max(1, Math.floor(Math.max(written.length, name.length) / 3)));
    const edits = distance(bare(written), bare(name), allowed);
    if (edits <= allowed && (best === null || edits < best.edits)) best = { name, edits };
  }
  return best?.name ?? null;
}

/** Case and the marks between words are the commonest slips (`maxOutputTokens`, `api-key`). */
function bare(name: string): string {
  return name.toLowerCase().replaceAll(/[-_. ]/g, "");
}

/** Edits from one word to another (insert, remove, replace, swap of neighbours); above `most` only that it is above. */
function distance(one: string, other: string, most: number): number {
  if (Math.abs(one.length - other.length) > most) return most + 1;
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1];
      let edits = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (swapped) edits = Math.min(edits, before[j - 2]! + 1);
      row.push(edits);
    }
    before = last;
    last = row;
  }
  return last[other.length]!;
}
