/** Quotes a text as one word of a command that people copy into a POSIX shell. Pure. */

const plain = /^[\w@%+:,./-][\w@%+=:,./-]*$/;

export function shellWord(text: string): string {
  return plain.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
