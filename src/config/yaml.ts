/** Bytes of a file → its YAML nodes, with the place of each; what the parser dislikes is said in human words. */
import {
  type Alias,
  isAlias,
  LineCounter,
  type Node,
  type ParsedNode,
  parseDocument,
  visit,
  type YAMLError,
} from "yaml";
import type { Place, Problems } from "./problem.ts";

export const file_bytes_max = 1024 * 1024;
/** sluice.yaml needs seven; far more is an attack on the stack. */
const depth_max = 64;

export interface YamlText {
  /** Null where the file is empty, or holds comments alone. */
  root: ParsedNode | null;
  placeOf(node: Node | null | undefined): Place | null;
  /** What an alias stands for, wherever it stands; null when nothing of that name stands before it. */
  target(alias: Alias): Node | null;
}

export function parseYaml(bytes: Uint8Array, problems: Problems): YamlText | null {
  const text = decoded(bytes, problems);
  if (text === null) return null;
  const counter = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: counter,
    prettyErrors: false,
    // Duplicates are found by the reader, in linear time and with both places.
    uniqueKeys: false,
    stringKeys: false,
    merge: false,
    version: "1.2",
    logLevel: "error",
  });
  const place = (offset: number): Place => {
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  addSyntaxProblems(document.errors, text, place, problems);
  if (problems.any) return null;
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, {
    Node(_, node, path) {
      if (path.length > depth_max * 2) {
        problems.add("", `is nested more than ${depth_max} levels deep`, place(node.range?.[0] ?? 0));
        return visit.BREAK;
      }
      if (isAlias(node)) {
        const target = anchors.get(node.source);
        if (target) targets.set(node, target);
      } else if ("anchor" in node && typeof node.anchor === "string") {
        anchors.set(node.anchor, node as Node);
      }
      return undefined;
    },
  });
  if (problems.any) return null;
  return {
    root: document.contents,
    placeOf: (node) => (node?.range ? place(node.range[0]) : null),
    target: (alias) => targets.get(alias) ?? null,
  };
}

function decoded(bytes: Uint8Array, problems: Problems): string | null {
  if (bytes.byteLength > file_bytes_max) {
    problems.add("", `is larger than ${file_bytes_max / 1024 / 1024} MiB; is it the right file?`, null);
    return null;
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // Said below.
  }
  problems.add("", "is not UTF-8 text; save it as UTF-8", null);
  return null;
}

/** One mistake makes the parser stumble again and again: the first of a line counts, and five lines are enough. */
function addSyntaxProblems(errors: YAMLError[], text: string, place: (offset: number) => Place, problems: Problems) {
  const lines = new Set<number>();
  for (const error of errors.toSorted((one, other) => one.pos[0] - other.pos[0])) {
    const at = place(error.pos[0]);
    if (lines.has(at.line) || lines.size >= 5) continue;
    lines.add(at.line);
    problems.add("", syntaxProblem(error, text), at);
  }
}

/** Never the parser's own message: it may quote the file, and with it a key. */
function syntaxProblem(error: YAMLError, text: string): string {
  const offset = error.pos[0];
  if (text[offset] === "{" && text[offset - 1] === "$") return `a value with \${…} needs quotes here: "\${NAME}"`;
  const before = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  if (/^[ ]*\t/.test(before + text[offset])) return syntaxWords.TAB_AS_INDENT;
  const words = syntaxWords[error.code as keyof typeof syntaxWords] ?? "is not valid YAML here";
  return words;
}

const syntaxWords = {
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
  RESOURCE_EXHAUSTION: `is nested more than ${depth_max} levels deep`,
} as const;
