/**
 * The scripts of a text, as far as they differ in code units (of UTF-16) per token. `latin` includes Cyrillic, Greek,
 * digits, blanks and code; `cjk` includes kana and hangul. Pure.
 */
export const scripts = ["latin", "cjk", "other"] as const;
export type Script = (typeof scripts)[number];

/** Code units by script. */
export type Units = Record<Script, number>;

export function scriptOf(codeUnit: number): Script {
  if (codeUnit < 0x0530 || (codeUnit >= 0x1e00 && codeUnit < 0x2070)) return "latin";
  const isCjk =
    (codeUnit >= 0x2e80 && codeUnit < 0xa000) ||
    (codeUnit >= 0xac00 && codeUnit < 0xd7b0) ||
    (codeUnit >= 0xf900 && codeUnit < 0xfb00) ||
    (codeUnit >= 0xff00 && codeUnit < 0xfff0);
  return isCjk ? "cjk" : "other";
}

/** Adds the code units of a text. Most texts are Latin, which takes one comparison for each unit. */
export function addUnits(units: Units, text: string): void {
  let latin = 0;
  for (let at = 0; at < text.length; at++) {
    const codeUnit = text.charCodeAt(at);
    if (codeUnit < 0x0530) latin += 1;
    else units[scriptOf(codeUnit)] += 1;
  }
  units.latin += latin;
}
