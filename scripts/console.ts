// Builds the console's pages into .cache/console.data, which src/admin/console/files.ts reads. scripts/run runs this
// when the sources have changed, and `npm run build` embeds the file in the executable.

import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { WrittenFiles } from "../src/admin/console/files.ts";

const root = join(import.meta.dir, "..");
const made = join(root, ".cache/console.data");

const types: Record<string, string> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};

type Asset = WrittenFiles["assets"][number];

async function main(): Promise<void> {
  const assets = await assetsOf(join(root, "console/index.tsx"));
  const script = await scriptOf(join(root, "console/early.ts"), assets);
  mkdirSync(join(root, ".cache"), { recursive: true });
  // The finished file is renamed, so that no process reads an incomplete one.
  const partial = `${made}.${process.pid}`;
  await Bun.write(
    partial,
    JSON.stringify({ document: documentWith(assets, script), script, assets } satisfies WrittenFiles),
  );
  renameSync(partial, made);
}

async function assetsOf(entry: string): Promise<Asset[]> {
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    target: "browser",
    minify: true,
    // A module that is imported dynamically becomes a file of its own.
    splitting: true,
    define: { "process.env.NODE_ENV": '"production"' },
    naming: { entry: "[name].[hash].[ext]", chunk: "[name].[hash].[ext]", asset: "[name].[hash].[ext]" },
  });
  return Promise.all(
    outputs.map(async (output) => {
      const name = output.path.replace(/^.*\//, "");
      const type = types[name.slice(name.lastIndexOf("."))];
      if (type === undefined) throw new Error(`There is no media type for ${name}.`);
      return { path: `/assets/${name}`, type, text: await output.text() };
    }),
  );
}

/** Builds the script that is inlined in the HTML document, and returns its text. */
async function scriptOf(entry: string, assets: readonly Asset[]): Promise<string> {
  const laterFiles = JSON.stringify(assets.map(({ path }) => path).filter((path) => isLater(path, assets)));
  const options = { target: "browser", minify: true, format: "iife", define: { laterFiles } } as const;
  const { outputs } = await Bun.build({ entrypoints: [entry], ...options });
  const text = (await outputs[0]!.text()).trim();
  if (/<\/script|<!--/i.test(text)) throw new Error("The script in the document would end before its end.");
  return text;
}

/** Whether the file is a dynamic import, which a program loads only when it needs it. */
function isLater(path: string, assets: readonly Asset[]): boolean {
  return assets.some(({ text }) => text.includes(`import("./${path.replace(/^.*\//, "")}")`));
}

/**
 * The HTML document of every page. It does not depend on the page, so the server sends the same document for all paths.
 * The files that are loaded later are named only in the script. The script precedes the styles, because otherwise it
 * would wait until the styles are loaded.
 */
function documentWith(assets: readonly Asset[], script: string): string {
  const first = assets.map(({ path }) => path).filter((path) => !isLater(path, assets));
  const ending = (end: string) => first.filter((path) => path.endsWith(end));
  const styles = ending(".css").map((path) => `<link rel="stylesheet" href="${path}">`);
  const programs = ending(".js").map((path) => `<script type="module" src="${path}"></script>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sluice</title>
<link rel="icon" href="data:,">
<script>${script}</script>
${[...styles, ...programs].join("\n")}
</head>
<body><noscript>The console needs JavaScript. Everything that it does can be done with commands, too: sluice help.</noscript></body>
</html>
`;
}

await main();
