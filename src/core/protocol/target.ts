/**
 * Reads the target of an HTTP request: its path and its query. The runtime gives a URL if there is a Host header, and
 * else a bare path (HTTP/1.0 without Host), for which `new URL` throws. Pure.
 */

export interface Target {
  /** The path as it was sent, beginning with a slash; only dot segments are resolved, by the runtime. */
  path: string;
  /** The query without the question mark. */
  query: string;
}

const origin = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;

export function targetOf(url: string): Target {
  const rest = (url.startsWith("/") ? url : url.replace(origin, "")).split("#", 1)[0]!;
  const mark = rest.indexOf("?");
  const path = mark < 0 ? rest : rest.slice(0, mark);
  return { path: path.startsWith("/") ? path : `/${path}`, query: mark < 0 ? "" : rest.slice(mark + 1) };
}
