/**
 * An engine's own text of a refusal, or of an error inside its answer, for operators who read the request's record: short,
 * on one line, without credentials, and with nothing between quotes but names of fields, because engines quote what
 * callers wrote. Pure.
 */
import { masked } from "../inference/masked.ts";
import { isFieldName } from "./fields.ts";
import { looksSecret } from "./violation.ts";

const characters_max = 500;
/** How many characters of the text are read. */
const read_characters_max = 4000;

/** A message about a request, without credentials and without its quotations of the request. */
export function unquoted(message: string): string {
  const text = message.slice(0, read_characters_max);
  const plain = text.replace(/\s+/g, " ").replace(/[^\x20-\x7e\u00a0-\ud7ff\uf900-\ufffd]/g, "?");
  const quiet = plain.replace(quoted, (whole, mark: string, inner: string) =>
    isFieldName(inner) ? whole : `${mark}…${mark}`,
  );
  const unvalued = quiet.replace(/\b(value|input)=(?!['"`]|-?\d)[^,)]*/g, "$1=…");
  const safe = masked(unvalued).replace(/\S{16,}/g, (word) => (looksSecret(word) ? "<secret>" : word));
  return safe.trim().slice(0, characters_max);
}

/**
 * A text from an opening quotation mark to the next closing one, or to the end. An apostrophe inside a word is not a
 * mark.
 */
const quoted = /(?<!\w)(['"`“‘«])((?:[^'"`”’»\\]|\\.|(?<=\w)'(?=\w))*)(?:['"`”’»]|$)/g;
