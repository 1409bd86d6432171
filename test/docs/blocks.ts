// Extracts the code blocks of README and the docs, as readers paste them.

import { readFileSync } from "node:fs";

export interface Block {
  page: string;
  line: number;
  /** The text after the opening fence: the language and, for commands, whether they are run. */
  info: string;
  text: string;
}

const own = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "proof/README.md"];
const docs = [...new Bun.Glob("docs/**/*.md").scanSync()];
export const pages = [...own, ...docs.sort()];

/** All fenced code blocks of a page, in any language. */
export function blocksOf(page: string): Block[] {
  const document = readFileSync(page, "utf8");
  return [...document.matchAll(/^( *)```(.*)\n([\s\S]*?)^\1```$/gm)].map(({ index, 2: info = "", 3: text = "" }) => ({
    page,
    line: document.slice(0, index).split("\n").length,
    info,
    text,
  }));
}

/** The commands of a block, which are run one after another: its lines, without comments. */
export function commandsOf(text: string): string[] {
  return text
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("#"));
}
