/**
 * PLAIN TEXT: the rule for text that may be a name, an address or a group, and the way to show other text on a
 * terminal. Plain text is one line without control characters (no database takes a NUL), line ends, lone surrogates,
 * and characters that change the direction of text, with which one name can look like another. Pure.
 */
const lineBreaking = "\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029";
const turning = "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069";

export const plainPattern = `^[^${lineBreaking}${turning}\\ud800-\\udfff]*$`;

const whole = new RegExp(plainPattern, "u");
const unsafe = new RegExp(`[${lineBreaking}${turning}]`, "gu");

export function isPlain(text: string): boolean {
  return whole.test(text);
}

/**
 * The text with a question mark in place of each character that could move the cursor, color the screen, or change the
 * direction of the text.
 */
export function plain(text: string): string {
  return text.replace(unsafe, "?");
}

/**
 * The JSON text, in which each character that `plain` replaces is written as an escape, which means the same to a
 * program.
 */
export function plainJson(json: string): string {
  return json.replace(unsafe, (character) =>
    character === "\n" ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
