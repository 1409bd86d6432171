/** What the YAML parser dislikes, in words that say what to do. */
import type { ErrorCode, YAMLError } from "yaml";

/** Never the parser's own message: it may quote the file, and with it a key. */
export function syntaxMessage(error: YAMLError, text: string): string {
  const offset = error.pos[0];
  if (text[offset] === "{" && text[offset - 1] === "$") return `a value with \${…} needs quotes here: "\${NAME}"`;
  const before = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  if (/^[ ]*\t/.test(before + text[offset])) return messages.TAB_AS_INDENT!;
  return messages[error.code] ?? "is not valid YAML here";
}

const messages: { [code in ErrorCode]?: string } = {
  TAB_AS_INDENT: "is indented with a tab; YAML wants spaces",
  BAD_INDENT: "is not indented like its neighbours, or a bracket before it is not closed",
  BLOCK_AS_IMPLICIT_KEY: "has two ':' on one line, or its text needs quotes",
  BLOCK_IN_FLOW: "has an indented block inside brackets; write it on one line",
  MISSING_CHAR: "lacks a character: a closing quote or bracket, or the ':' after a name",
  UNEXPECTED_TOKEN: "has something here that YAML does not expect; does a text need quotes, or is a bracket too many?",
  BAD_SCALAR_START: "begins a text with a character that YAML reserves; put the text in quotes",
  BAD_DQ_ESCAPE: 'has an unknown \\ escape in "double quotes"; single quotes take it as it is',
  MULTILINE_IMPLICIT_KEY: "has a name that runs over several lines, or lacks a ':'",
  KEY_OVER_1024_CHARS: "has a name that is far too long, or lacks a ':'",
  MULTIPLE_DOCS: "begins a second document (---); the file must hold one",
  MULTIPLE_ANCHORS: "has two anchors (&) on one value",
  MULTIPLE_TAGS: "has two tags (!) on one value",
  ALIAS_PROPS: "has an anchor or a tag on an alias (*)",
  BAD_ALIAS: "has an alias (*) without a name; a text that begins with * needs quotes",
  BAD_DIRECTIVE: "has a directive (%) that YAML does not know",
  TAG_RESOLVE_FAILED: "has a tag (!) that does not fit its value; leave it out",
  RESOURCE_EXHAUSTION: "is nested too deep",
};
