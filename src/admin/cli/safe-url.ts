/** Parses a server's URL that somebody typed. Throws an Error if `secret` would be sent there in the clear. */
export function safeUrl(text: string, secret: string): URL {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new Error(`'${text.slice(0, 100)}' is not a server's URL. Use one such as https://sluice.example:9090.`);
  }
  if (url.username || url.password || url.search) throw new Error("A server's URL has no user and no query.");
  const isLoopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url.protocol === "http:" && !isLoopback) {
    throw new Error(`${url.origin} would get ${secret} in the clear. Use https://.`);
  }
  return url;
}
