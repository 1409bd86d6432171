/** What a browser loads before anybody has signed in: the document and what it names, as gzip makes it. In bytes. */
export async function firstLoad_bytes(origin: string): Promise<number> {
  const headers = { "accept-encoding": "gzip", accept: "text/html" };
  const document = await (await fetch(`${origin}/`, { headers })).text();
  const files = [...document.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path]) => path!);
  const sizes = ["/", ...files].map(async (path) => {
    const answer = await fetch(origin + path, { headers, decompress: false });
    return (await answer.arrayBuffer()).byteLength;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
