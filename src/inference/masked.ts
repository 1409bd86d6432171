/**
 * MASKED: text of a caller without secrets of ours, for whatever is kept or told of it: log, traces, audit log, errors. A
 * client may put its key where an id belongs (docs/design/keys.md, No message repeats a secret). Pure.
 *
 * `slk_`: a key. `slo_`: a token of an operator. `slt_`, `slr_`: tokens of people. An underscore may be encoded, as in paths.
 * The first 8 characters of a secret may be shown, so that people can tell them apart.
 */
const secrets = /sl([kort])(?:_|%5f)[a-z0-9_-]{5,}/gi;

export function masked(text: string): string {
  return text.replace(secrets, (_, kind: string) => (kind.toLowerCase() === "k" ? "<key>" : "<token>"));
}

/** The same of all texts in a value, as JSON keeps it. */
export function maskedDeep<T>(value: T): T {
  return JSON.parse(masked(JSON.stringify(value))) as T;
}
