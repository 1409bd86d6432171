/**
 * The closest known name, or null. It differs by at most one edit for every three characters, and by at most three
 * edits. Case and the separators between words are ignored, because those are the most common mistakes
 * (`maxOutputTokens`, `api-key`).
 */
export function closestName(written: string, known: Iterable<string>): string | null {
  if (written.length > 64) return null;
  let best: string | null = null;
  let bestEdits = Number.POSITIVE_INFINITY;
  for (const name of known) {
    const edits_max = Math.min(3, Math.floor(Math.max(written.length, name.length) / 3));
    const edits = distance(bare(written), bare(name), edits_max);
    if (edits > edits_max || edits >= bestEdits) continue;
    best = name;
    bestEdits = edits;
  }
  return best;
}

function bare(name: string): string {
  return name.toLowerCase().replaceAll(/[-_. ]/g, "");
}

/**
 * The number of edits from one word to another (insert, remove, replace, swap neighbours). If the number is above
 * `most`, any number above `most` may be returned.
 */
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
