/** Turns the base URL of an engine, as an operator writes it, into one to which a path can be appended. */

type CheckedUrl = { url: string } | { problem: string };

/**
 * The checked base URL, or a `problem` that completes a sentence that begins with the field's name. The problem never
 * repeats the URL, which may have a secret.
 */
export function checkedUrl(written: string): CheckedUrl {
  const text = written.trim();
  if (!/^https?:\/\//i.test(text)) {
    return { problem: "must be a URL that begins with http:// or https://, such as http://127.0.0.1:8000/v1" };
  }
  if (!URL.canParse(text) || /[\s\\]/.test(text)) return { problem: "is not a valid URL" };
  const url = new URL(text);
  if (url.username || url.password) {
    return { problem: "must not contain a user name or password; put the engine's key in api_key" };
  }
  if (url.search || text.includes("?")) return { problem: "must not contain a query (?…): paths are appended to it" };
  if (url.hash || text.includes("#")) return { problem: "must not contain a fragment (#…): paths are appended to it" };
  if (url.port === "0") return { problem: "must not have port 0" };
  const path = url.pathname.replace(/\/+$/, "");
  if (/\/(chat\/completions|messages|responses|models)$/.test(path)) {
    return { problem: "must end with /v1; Sluice appends the path of the operation" };
  }
  return { url: url.origin + (path || "/v1") };
}
