/**
 * The files of the console: one document, and what it loads. scripts/console.ts makes them of the sources in `console/`, at
 * .cache/console.data, before the first command of a fresh clone; an executable has them inside.
 */

export interface ConsoleFile {
  bytes: Uint8Array;
  /** The media type, such as `text/javascript; charset=utf-8`. */
  type: string;
}

export interface ConsoleFiles {
  /** The HTML document, which is the same for every page. */
  document: string;
  /** The script within the document; empty: there is none. */
  script: string;
  /** The key is the path, `/assets/<name>.<hash>.<ext>`. A path always has the same bytes. */
  assets: ReadonlyMap<string, ConsoleFile>;
}

/** The files in the form in which scripts/console.ts writes them. */
export interface WrittenFiles extends Pick<ConsoleFiles, "document" | "script"> {
  assets: { path: string; type: string; text: string }[];
}

/**
 * Loads the console's files. The import is in a `try`, so that a build passes, and a node starts, even if the files
 * were not made.
 */
export async function consoleFiles(): Promise<ConsoleFiles> {
  try {
    const made = await import("../../../.cache/console.data", { with: { type: "file" } });
    return read((await Bun.file(made.default).json()) as WrittenFiles);
  } catch {
    return { document: notMade, script: "", assets: new Map() };
  }
}

function read({ document, script, assets }: WrittenFiles): ConsoleFiles {
  const encoder = new TextEncoder();
  const files = assets.map(({ path, type, text }) => [path, { type, bytes: encoder.encode(text) }] as const);
  return { document, script, assets: new Map(files) };
}

const notMade = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sluice</title>
</head>
<body>
<p>The pages of the console are not part of this build. Use the commands: sluice help.</p>
</body>
</html>
`;
