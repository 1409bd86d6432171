/**
 * Cookies of browsers that are signed in. Each value is opaque, no script can read the cookie, and browsers do not send
 * it with requests that other sites cause, unless the user follows a link. With HTTPS its name begins with `__Host-`,
 * so that no other host of the domain can set it. Pure.
 */

/** The origin that sets a cookie, such as `https://console.example`. */
type Origin = string;

export interface CookieName {
  name: string;
  origin: Origin;
}

const isSecure = (origin: Origin) => origin.startsWith("https:");
const written = ({ name, origin }: CookieName) => (isSecure(origin) ? `__Host-${name}` : name);

/**
 * The value of the cookie. Null: the cookie is missing, or there are several of this name, one of which another site
 * may have set.
 */
export function cookieIn(headers: Headers, cookie: CookieName): string | null {
  const prefix = `${written(cookie)}=`;
  const values = (headers.get("cookie") ?? "").split(/; ?/).filter((pair) => pair.startsWith(prefix));
  return values.length === 1 ? values[0]!.slice(prefix.length) : null;
}

/** The value of the header `Set-Cookie`. `lasts_s`: the lifetime in seconds; null: until the browser is closed. */
export function setCookie(cookie: CookieName, value: string, lasts_s: number | null = null): string {
  const parts = [`${written(cookie)}=${value}`, "Path=/", "HttpOnly", "SameSite=Lax"];
  if (isSecure(cookie.origin)) parts.push("Secure");
  if (lasts_s !== null) parts.push(`Max-Age=${lasts_s}`);
  return parts.join("; ");
}

export function endCookie(cookie: CookieName): string {
  return setCookie(cookie, "", 0);
}
