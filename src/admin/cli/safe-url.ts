const isLoopback = ({ hostname }: URL) => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);

/** The fetch option by which a request to this machine bypasses proxies, which could read it. */
export const pastProxies = (url: string): { proxy?: false } => (isLoopback(new URL(url)) ? { proxy: false } : {});

/** Parses a server's URL that somebody typed. Throws an Error if `secret` would be sent there in the clear. */
export function safeUrl(text: string, secret: string): URL {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new Error(`'${text.slice(0, 100)}' is not a server's URL. Use one such as https://sluice.example:9090.`);
  }
  if (url.username || url.password || url.search) throw new Error("A server's URL has no user and no query.");
  if (url.protocol === "http:" && !isLoopback(url)) {
    throw new Error(`${url.origin} would get ${secret} in the clear. Use https://.`);
  }
  return url;
}
