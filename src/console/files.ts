/** The files of the console, which are embedded in the executable: one document, and what it loads. */

export interface ConsoleFile {
  bytes: Uint8Array;
  /** Its media type: `text/javascript; charset=utf-8`. */
  type: string;
}

export interface ConsoleFiles {
  /** The HTML of every page. */
  document: string;
  /** By path: `/assets/<name>.<hash>.<ext>`. A path always has the same bytes. */
  assets: ReadonlyMap<string, ConsoleFile>;
}

/** A stand-in, until the build of the console gives its own. */
export const consoleFiles: ConsoleFiles = {
  document: `<!doctype html>
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
`,
  assets: new Map(),
};
