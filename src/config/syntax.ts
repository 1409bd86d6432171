/** Explains the errors of the YAML parser: what is wrong, and what to do. */
import type { ErrorCode, YAMLError } from "yaml";

/** The message for an error. The parser's own message is never used: it may quote the file, and with it a key. */
export function syntaxMessage(error: YAMLError, text: string): string {
  const offset = error.pos[0];
  if (text[offset] === "{" && text[offset - 1] === "$") return `a value with \${…} needs quotes here: "\${NAME}"`;
  const before = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  if (/^[ ]*\t/.test(before + text[offset])) return messages.TAB_AS_INDENT!;
  return messages[error.code] ?? "is not valid YAML here";
}

const messages: { [code in ErrorCode]?: string } = {
  TAB_AS_INDENT: "is indented with a tab; use spaces",
  BAD_INDENT: "is not indented like the lines around it, or follows an unclosed bracket",
  BLOCK_AS_IMPLICIT_KEY: "has two ':' on one line, or its text needs quotes",
  BLOCK_IN_FLOW: "has an indented block inside brackets; write it on one line",
  MISSING_CHAR: "has no closing quote or bracket, or no ':' after a name",
  UNEXPECTED_TOKEN: "is not valid YAML here: a text may need quotes, or there is an extra bracket",
  BAD_SCALAR_START: "starts with a character that YAML reserves; put the text in quotes",
  BAD_DQ_ESCAPE: 'has an unknown \\ escape in "double quotes"; use single quotes',
  MULTILINE_IMPLICIT_KEY: "has a name on several lines, or no ':'",
  KEY_OVER_1024_CHARS: "has a name that is too long, or no ':'",
  MULTIPLE_DOCS: "starts a second document (---); the file must contain only one",
  MULTIPLE_ANCHORS: "has two anchors (&) on one value",
  MULTIPLE_TAGS: "has two tags (!) on one value",
  ALIAS_PROPS: "has an anchor or a tag on an alias (*)",
  BAD_ALIAS: "has an alias (*) without a name; a text that starts with * needs quotes",
  BAD_DIRECTIVE: "has a directive (%) that YAML does not know",
  TAG_RESOLVE_FAILED: "has a tag (!) that does not match its value; remove it",
  RESOURCE_EXHAUSTION: "is nested too deeply",
};
