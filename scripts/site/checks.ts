// The checks of the built site that need no browser.

import { existsSync, readFileSync, statSync } from "node:fs";
import { join, posix } from "node:path";

/** Questions of readers, each with the page that must be among the first results of the search. */
export const questions: readonly (readonly [question: string, page: string])[] = [
  ["how do I connect Claude Code", "/clients"],
  ["limit what a key can use", "/start"],
  ["usage_limit_reached", "/errors"],
  ["go back to the old version", "/upgrading"],
  ["restore a backup of the database", "/databases"],
  ["SLUICE_WORKERS", "/configuration"],
  ["sign in with Keycloak", "/identity"],
  ["install on Kubernetes with Helm", "/deploying"],
  ["what does a unit cost", "/metering"],
  ["engine fails in the middle of a stream", "/routing"],
  ["webhook signature", "/notices"],
  ["alerts in Prometheus", "/operating"],
];

/** Links and anchors without a target within the site, and files that a page would load from another host. */
export function deadLinksOf(root: string): string[] {
  const paths = [...new Bun.Glob("**/*.html").scanSync({ cwd: root })].sort();
  const pages = new Map(paths.map((path) => [path, readFileSync(join(root, path), "utf8")]));
  const ids = new Map(
    [...pages].map(([path, html]) => [path, new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!))]),
  );
  return [...pages].flatMap(([path, html]) => {
    const links = new Set(
      [...html.matchAll(/<a [^>]*?href="([^"]+)"/g)].map(([, link]) => link!.replaceAll("&amp;", "&")),
    );
    const loaded = [...html.matchAll(/<(?:script|img|link|source|iframe)[^>]*? (?:src|href)="([^"]+)"/g)].map(
      ([, link]) => link!,
    );
    return [
      ...loaded.filter((link) => /^(https?:)?\/\//.test(link)).map((link) => `${path} loads ${link} from another host`),
      ...[...links, ...loaded].flatMap((link) => deadLink(path, link, root, ids)),
    ];
  });
}

function deadLink(from: string, link: string, root: string, ids: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  if (/^([a-z]+:|\/\/)/.test(link)) return [];
  const [name, anchor] = link.split("#") as [string, string?];
  const path = name === "" ? from : name.startsWith("/") ? name.slice(1) : posix.join(posix.dirname(from), name);
  const file = path === "" || path.endsWith("/") ? `${path}index.html` : path;
  if (!existsSync(join(root, file)) || !statSync(join(root, file)).isFile())
    return [`${from} links to ${link}, which is not there`];
  if (anchor === undefined || anchor === "" || !ids.has(file)) return [];
  return ids.get(file)!.has(decodeURIComponent(anchor)) ? [] : [`${from} links to ${link}: there is no such heading`];
}
