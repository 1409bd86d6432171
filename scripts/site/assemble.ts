// Assembles the folder from which VitePress builds the site: the documents of this repository with links that work
// within the site, pages for both API contracts, and the configuration in `site`.

import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { type Contract, type Page, pagesOf } from "./contract.ts";

export const folder = ".cache/site";

/**
 * Files that pages link to, and that are useful on their own. The site offers them as downloads; a link to any other
 * file is replaced by the file's name.
 */
const downloads = [
  "contract/openapi.json",
  "contract/management.json",
  "contract/sluice.schema.json",
  "sluice.example.yaml",
  "compose.yaml",
  "deploy/roles.sql",
  "deploy/systemd/sluice.service",
  "deploy/systemd/shell.sh",
  "deploy/prometheus/rules.yaml",
];

/** The key is a document's path in the repository; the value is the path of its page. */
export function pagePaths(): Map<string, string> {
  const own = [...new Bun.Glob("docs/**/*.md").scanSync()].sort();
  const pages = own.map((path): [string, string] => {
    const below = path.slice("docs/".length);
    return [path, below.replace(/README\.md$/, "index.md")];
  });
  return new Map([
    ...pages,
    ["CONTRIBUTING.md", "contributing.md"],
    ["SECURITY.md", "report-a-weakness.md"],
    ["CHANGELOG.md", "changelog.md"],
    ["proof/README.md", "proof-of-metering.md"],
    ["README.md", "readme.md"],
  ]);
}

/** The text of a document for its page of the site, with working links. */
export function pageText(from: string, text: string, pages: ReadonlyMap<string, string>): string {
  const page = pages.get(from)!;
  const outsideCode = text.split(/(^ *```[\s\S]*?^ *```$)/gm);
  const linked = outsideCode.map((part, index) =>
    index % 2 === 1
      ? part
      : part.replaceAll(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (link, image, words, target) => {
          if (/^([a-z]+:|#)/.test(target)) return link;
          const [name, anchor] = target.split("#") as [string, string?];
          const file = posix.normalize(posix.join(posix.dirname(from), name)).replace(/\/$/, "");
          const to = image ? file.replace(/^docs\//, "") : (pages.get(file) ?? pages.get(`${file}/README.md`));
          if (to !== undefined) {
            const relative = posix.relative(posix.dirname(page), to);
            const path = relative.startsWith(".") ? relative : `./${relative}`;
            return `${image}[${words}](${path}${anchor === undefined ? "" : `#${anchor}`})`;
          }
          if (downloads.includes(file)) return `[${words}](/files/${file})`;
          return words.includes("`") || words === file ? words : `${words} (\`${file}\`)`;
        }),
  );
  return linked.join("");
}

export function assemble(): void {
  mkdirSync(folder, { recursive: true });
  for (const name of ["pages", ".vitepress", "dist"]) rmSync(join(folder, name), { recursive: true, force: true });
  for (const name of ["package.json", "bun.lock"]) cpSync(join("site", name), join(folder, name));
  cpSync("site/vitepress", join(folder, ".vitepress"), { recursive: true });
  cpSync("scripts/site/anchor.ts", join(folder, ".vitepress/anchor.ts"));
  const pages = pagePaths();
  for (const [path, page] of pages) {
    put(page, pageText(path, readFileSync(path, "utf8"), pages));
  }
  const contracts = {
    client: contractPages("contract/openapi.json", "api"),
    management: contractPages("contract/management.json", "management-api"),
  };
  writeFileSync(join(folder, ".vitepress/contracts.json"), JSON.stringify(contracts));
  cpSync("docs/pictures", join(folder, "pages/pictures"), { recursive: true });
  for (const file of downloads) {
    mkdirSync(dirname(join(folder, "pages/public/files", file)), { recursive: true });
    cpSync(file, join(folder, "pages/public/files", file));
  }
}

function put(page: string, text: string): void {
  const path = join(folder, "pages", page);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Writes the pages of a contract, and returns their entries in the navigation. */
function contractPages(file: string, place: string): { text: string; link: string }[] {
  const pages: Page[] = pagesOf(JSON.parse(readFileSync(file, "utf8")) as Contract, place);
  for (const { path, text } of pages) {
    const download = `\n\nThe whole document: [${file}](/files/${file}).\n`;
    put(path, path.endsWith("/index.md") ? text + download : text);
  }
  return pages.map(({ path, title }) => ({ text: title, link: `/${path.replace(/(index)?\.md$/, "")}` }));
}
