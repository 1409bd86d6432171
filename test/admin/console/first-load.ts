/**
 * The total gzipped size, in bytes, of what a browser loads before a user has signed in: the HTML document and the
 * files that it refers to.
 */
export async function firstLoad_bytes(origin: string): Promise<number> {
  return sizeOf(origin, ["/", ...(await firstFiles(origin))]);
}

/** The total size of what a browser has loaded once a user has opened the pages with charts. */
export async function wholeLoad_bytes(origin: string): Promise<number> {
  const files = new Set(await firstFiles(origin));
  // The loop also visits the files that are added to the set during the iteration.
  for (const path of files) {
    const text = await (await fetch(origin + path)).text();
    for (const [, name] of text.matchAll(/"\.\/([\w.-]+\.js)"/g)) files.add(`/assets/${name}`);
  }
  return sizeOf(origin, ["/", ...files]);
}

const headers = { "accept-encoding": "gzip", accept: "text/html" };

async function firstFiles(origin: string): Promise<string[]> {
  const document = await (await fetch(`${origin}/`, { headers })).text();
  return [...document.matchAll(/ (?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path!);
}

async function sizeOf(origin: string, paths: readonly string[]): Promise<number> {
  const sizes = paths.map(async (path) => {
    const answer = await fetch(origin + path, { headers, decompress: false });
    return (await answer.arrayBuffer()).byteLength;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
