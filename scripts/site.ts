// `npm run site`: builds the documentation site into .cache/site/dist. `-- --serve` also serves it on localhost.

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { command } from "./command.ts";
import { assemble, folder } from "./site/assemble.ts";

const limit_ms = 5 * 60_000;
/** File name extensions that are not pages: VitePress leaves links to such files unchanged. */
const environment = { VITE_EXTRA_EXTENSIONS: "sql,service" };

/** Builds the site and returns its folder. */
export async function buildSite(): Promise<string> {
  assemble();
  await done([
    process.execPath,
    "install",
    "--frozen-lockfile",
    "--ignore-scripts",
    "--linker",
    "hoisted",
    "--cwd",
    folder,
  ]);
  await done([process.execPath, "node_modules/vitepress/bin/vitepress.js", "build"], folder);
  return join(folder, "dist");
}

async function done(words: string[], place = process.cwd()): Promise<void> {
  const { code, output } = await command(words, { limit_ms, quiet: true, folder: place, environment });
  if (code !== 0) throw new Error(`${words.slice(1, 4).join(" ")} ended with ${code}:\n${output}`);
}

/** Serves the files of the site, as a static web host does. */
export function serveSite(root: string, port = 0): ReturnType<typeof Bun.serve> {
  return Bun.serve({
    hostname: "127.0.0.1",
    port,
    fetch(request) {
      const path = decodeURIComponent(new URL(request.url).pathname);
      const wanted = join(root, path.endsWith("/") ? `${path}index.html` : path);
      const isThere = wanted.startsWith(`${root}/`) && existsSync(wanted) && statSync(wanted).isFile();
      return isThere ? new Response(Bun.file(wanted)) : new Response(Bun.file(join(root, "404.html")), { status: 404 });
    },
  });
}

if (import.meta.main) {
  const root = await buildSite();
  console.log(`the site is in ${root}`);
  if (process.argv.includes("--serve")) console.log(`shown on ${serveSite(root, 4173).url}`);
}
