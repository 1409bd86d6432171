/**
 * Reads the target of an HTTP request: its path and its query. The runtime gives a URL if the Host header makes one, and else
 * a bare path (HTTP/1.0 without Host), for which `new URL` throws. Pure.
 */

export interface Target {
  /** Begins with a slash. It is as it was sent, except that the runtime has resolved dot segments. */
  path: string;
  /** Without the question mark. */
  query: string;
}

const origin = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;

export function targetOf(url: string): Target {
  const rest = (url.startsWith("/") ? url : url.replace(origin, "")).split("#", 1)[0]!;
  const mark = rest.indexOf("?");
  const path = mark < 0 ? rest : rest.slice(0, mark);
  return { path: path.startsWith("/") ? path : `/${path}`, query: mark < 0 ? "" : rest.slice(mark + 1) };
}
