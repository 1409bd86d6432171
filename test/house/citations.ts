// Checks that citations in comments and links between documents refer to existing files and headings. The format of
// citations is in docs/design/README.md, How to cite.

import { anchorOf } from "../../scripts/site/anchor.ts";
import { commentsOf, resolved, type Tree } from "./source.ts";

/** The headings of a document in order, without `#`. */
export function headingsOf(document: string): string[] {
  return [...withoutCode(document).matchAll(/^#{1,6} +(.+?) *$/gm)].map((match) => match[1]!.replaceAll("`", ""));
}

/** Citations in comments whose file or heading does not exist. `documents` are all Markdown files of the repository. */
export function deadCitations(tree: Tree, documents: Tree): string[] {
  return [...tree].flatMap(([path, source]) => {
    const comments = commentsOf(path, source);
    const all = comments.map(({ text }) => text).join("\n");
    return comments.flatMap(({ line, text }) =>
      [...misnamed(text, documents), ...vague(text), ...strayRules(text, all, documents)].map(
        (problem) => `${path}:${line} ${problem}`,
      ),
    );
  });
}

/**
 * Source files that comments name and that do not exist. A file name of one letter is an example, such as `src/a.ts`.
 */
export function deadFileNames(tree: Tree, paths: readonly string[]): string[] {
  return [...tree].flatMap(([path, source]) =>
    commentsOf(path, source).flatMap(({ line, text }) =>
      [...text.matchAll(/(?<![\w./*-])(?:\.{1,2}\/)*((?:[\w.-]+\/)*[\w.-]+\.(?:tsx?|sql))\b(?![\w/*(])/g)]
        .map(([, name]) => name!)
        .filter((name) => !/(?:^|[/_])[a-z]\.(?:test\.)?(?:tsx?|sql)$/.test(name))
        .filter((name) => !paths.some((one) => one === name || one.endsWith(`/${name}`)))
        .map((name) => `${path}:${line} names ${name}, which is not in this repository`),
    ),
  );
}

const instead = "Instead: `docs/design/PAGE.md, Heading`, where PAGE says it in this repository's own words";

function misnamed(text: string, documents: Tree): string[] {
  const spoken = text.replaceAll(/\bhttps?:\/\/\S+/g, "");
  return [...spoken.matchAll(/[\w@./-]*[\w-]\.md\b/g)].flatMap((match) => {
    const name = match[0];
    const document = documents.get(name);
    if (document === undefined) return [`cites ${name}, which is not in this repository. ${instead}`];
    const rest = spoken.slice(match.index + name.length);
    // A citation's heading begins with a capital letter. A page for users may also be cited without a heading.
    if (!name.startsWith("docs/design/") && !(name.startsWith("docs/") && /^,\s+[A-Z]/.test(rest))) return [];
    const headings = headingsOf(document);
    if (headings.some((heading) => names(rest, heading))) return [];
    return [`cites ${name}${rest.slice(0, 40)}: no heading of that page. Headings: ${headings.join("; ")}`];
  });
}

/**
 * Whether the text after a citation's path names this heading: it begins with the heading, and the heading is not the
 * beginning of a longer name.
 */
function names(rest: string, heading: string): boolean {
  const said = rest.replaceAll("`", "");
  return said.startsWith(`, ${heading}`) && /^([.,;:)]|$)/.test(said.slice(heading.length + 2));
}

/** References to a document that do not name it, so that readers cannot find it. */
const pointing = [/\bdesign:/i, /\(B\d\d\)/, /\bpart [a-h](?=[,.;)]|$)/, /\bthe (decisions|specification) says?\b/i];

function vague(text: string): string[] {
  return pointing.flatMap((words) => {
    const found = words.exec(text);
    return found ? [`says "${found[0].trim()}", and not where that is written. ${instead}`] : [];
  });
}

const rulesPage = "docs/design/metering.md";

/**
 * Rules of docs/design/metering.md, The nine rules, that a comment names by number although its file does not cite that
 * page.
 */
function strayRules(text: string, all: string, documents: Tree): string[] {
  const known = headingsOf(documents.get(rulesPage) ?? "");
  return [...text.matchAll(/\brule (\d+)\b/gi)].flatMap(([said, number]) => {
    if (!all.includes(rulesPage)) return [`says "${said}" in a file that does not cite ${rulesPage}. ${instead}`];
    const exists = known.some((heading) => heading.startsWith(`Rule ${number}:`));
    return exists ? [] : [`says "${said}", which ${rulesPage} does not have`];
  });
}

/** Design pages that do not say which test checks them. That the test exists is checked by `deadLinks`. */
export function unheldPages(documents: Tree): string[] {
  return [...documents].flatMap(([path, page]) =>
    !path.startsWith("docs/design/") || path.endsWith("/README.md") || /^Held by: .*`test\//m.test(page)
      ? []
      : [`${path} does not say which test holds it. Instead: a line "Held by:" with its tests`],
  );
}

/** Links in documents, and other mentions of files, whose target does not exist. */
export function deadLinks(documents: Tree, exists: (path: string) => boolean): string[] {
  return [...documents].flatMap(([path, document]) => {
    const text = withoutCode(document);
    const links = [...text.matchAll(link)].map((match) => match[1]!);
    const named = [...text.replaceAll(link, "").matchAll(file)].map((match) => match[1] ?? match[0]);
    return [
      ...links.flatMap((target) => deadLink(path, target, documents, exists)),
      ...named.flatMap((name) =>
        exists(name) || exists(beside(path, name)) ? [] : [`${path} names ${name}, which is not there`],
      ),
    ];
  });
}

const link = /\[[^\]]*\]\(([^)\s]+)\)/g;
/**
 * Matches a path of this repository between backticks, or the name of a document. Names of other programs' documents
 * begin with capitals and are not matched.
 */
const file =
  /`((?:src|db|test|scripts|bench|deploy|docs)\/[\w./-]*\w)\/?`|(?<![\w/.@-])(?:\.\.\/)*[a-z0-9][\w./-]*\.md\b/g;

function deadLink(from: string, target: string, documents: Tree, exists: (path: string) => boolean): string[] {
  if (/^[a-z]+:/.test(target)) return [];
  const [name = "", anchor] = target.split("#");
  const path = name === "" ? from : beside(from, name);
  if (!exists(path)) return [`${from} links to ${target}, which is not there`];
  const document = documents.get(path);
  if (anchor === undefined || document === undefined) return [];
  return headingsOf(document).some((heading) => anchorOf(heading) === anchor)
    ? []
    : [`${from} links to ${target}: ${path} has no such heading`];
}

function beside(from: string, name: string): string {
  return resolved(from, `./${name}`)!.replace(/\/$/, "");
}

function withoutCode(document: string): string {
  return document.replaceAll(/^( *)```[\s\S]*?^\1```/gm, "");
}
