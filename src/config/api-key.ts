/** An engine's key if it can be the value of a header, else the problem, in words that never show the key. */
type CheckedKey = { key: string } | { problem: string };

export function checkedKey(written: string): CheckedKey {
  const key = written.trim();
  if (key === "") return { problem: "is empty" };
  const variable = /^\$([A-Za-z_][A-Za-z0-9_]*)$/.exec(key)?.[1];
  if (variable) return { problem: `must name its variable in braces: "\${${variable}}"` };
  if (!/^[\x21-\x7e]+$/.test(key)) {
    return { problem: "contains a space, a line break, or a character outside ASCII, which a header cannot contain" };
  }
  return { key };
}
