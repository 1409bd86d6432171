/**
 * Removes this service's secrets from a caller's text, before it goes to a log, a trace, the audit log or an error. A
 * client may put its key where an id belongs (docs/design/keys.md, No message repeats a secret). Pure.
 *
 * `slk_` begins a key, `slo_` a token of an operator, `slt_` and `slr_` tokens of people. The underscore may be
 * percent-encoded, as in paths. The first 8 characters of a secret may be shown, so that people can distinguish
 * secrets.
 */
const secrets = /sl([kort])(?:_|%5f)[a-z0-9_-]{5,}/gi;

export function masked(text: string): string {
  return text.replace(secrets, (_, kind: string) => (kind.toLowerCase() === "k" ? "<key>" : "<token>"));
}

/** The URL without the parts in which a secret may be: user name, password, query and fragment. */
export function maskedUrl(text: string): string {
  const url = URL.parse(text);
  if (!url) return "<url>";
  const user = url.username || url.password ? "<user>@" : "";
  return `${url.protocol}//${user}${url.host}${url.pathname}${url.search ? "?<query>" : ""}`;
}

/** A copy of the value, through JSON, with all texts masked. */
export function maskedDeep<T>(value: T): T {
  return JSON.parse(masked(JSON.stringify(value))) as T;
}
