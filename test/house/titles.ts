// Whether a test file has a test whose full name contains these words, judged by the file's text. A test's full name
// begins with the names of its groups, and may contain inserted values.

const value = /%[a-z]|\$\{[^}]*\}|\$\w+/;

export function hasTest(text: string, words: string): boolean {
  const plain = text.replaceAll(/\\(["'])/g, "$1");
  const titles = [...text.matchAll(/(["'`])((?:\\.|(?!\1).)*)\1/g)].map(([, , title]) => title!.split(value));
  /**
   * Whether the words are in the name of a single test or group. An inserted value, such as `%s`, may stand for the
   * last word.
   */
  const isInTitle = (some: string) =>
    plain.includes(some) ||
    (some.includes(" ") && titles.some((pieces) => pieces.slice(0, -1).some((piece) => endsBefore(piece, some))));
  /** Whether a group's name ends with these words. */
  const endsTitle = (some: string) =>
    titles.some((pieces) => {
      const last = pieces.at(-1)!;
      return last === "" ? pieces.length > 1 && endsBefore(pieces.at(-2)!, some) : last.endsWith(some);
    });
  const spaces = [...words.matchAll(/ /g)].map(({ index }) => index);
  return isInTitle(words) || spaces.some((at) => endsTitle(words.slice(0, at)) && isInTitle(words.slice(at + 1)));
}

/** Whether a piece of a name ends with all words but the last, which is an inserted value. */
function endsBefore(piece: string, words: string): boolean {
  return piece.endsWith(words.slice(0, words.lastIndexOf(" ") + 1));
}
