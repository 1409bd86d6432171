/**
 * Parses what an administrator entered: each function returns the value, or throws a ManagementError that says what is
 * valid. Pure. Arguments are `unknown` because they may come through the socket.
 */
import { isNetwork } from "../auth/network.ts";
import { type Scope, scopes as scopeNames } from "../store/directory.ts";
import { fail } from "./error.ts";

const name_chars_max = 200;
const text_chars_max = 1000;
const grace_days_max = 365;

export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

/** The beginning of a text, safe to quote in one line. */
export function excerpt(text: string): string {
  const line = text.replace(/\p{Cc}/gu, "?");
  return line.length > 80 ? `${line.slice(0, 80)}…` : line;
}

/** And what the database accepts: no NUL, no half of a surrogate pair. */
function isOneLine(words: string): boolean {
  return words.isWellFormed() && !/[\p{Cc}\u2028\u2029]/u.test(words);
}

export function text(value: unknown, what: string): string {
  if (typeof value !== "string" || value.length > text_chars_max) fail(`Specify ${what}.`);
  const trimmed = value.trim();
  if (trimmed === "" || !isOneLine(trimmed)) fail(`Specify ${what}.`);
  return trimmed;
}

/** 1 to 63 lowercase letters, digits and hyphens: a host name's label, so that it fits wherever names do. */
export function slug(value: unknown): string {
  const word = text(value, "a slug");
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(word)) return word;
  fail(
    `'${excerpt(word)}' is not a slug. A slug has 1 to 63 lowercase letters, digits, and hyphens, and begins and ends with a letter or digit.`,
  );
}

/** Any text on one line. */
export function name(value: unknown, what: string): string {
  if (typeof value !== "string" || value.trim() === "") fail(`${what} must not be empty.`);
  const words = value.trim();
  if (words.length > name_chars_max) fail(`${what} must have at most ${name_chars_max} characters.`);
  if (!isOneLine(words)) {
    fail(`${what} must not contain line breaks or control characters.`);
  }
  return words;
}

export function plan(value: unknown, known: readonly string[]): string {
  const word = text(value, "a plan's name");
  if (known.includes(word)) return word;
  if (known.length === 0) fail("The catalog has no plans. Add one under 'plans:' in sluice.yaml.");
  fail(`There is no plan '${excerpt(word)}'. The catalog has: ${known.join(", ")}.`);
}

/** Absent: all scopes. In the order of `scopeNames`, each once. */
export function scopes(value: unknown): Scope[] {
  if (isAbsent(value)) return [...scopeNames];
  const words = list(value, "scopes");
  const wrong = words.find((word) => !scopeNames.includes(word as Scope));
  if (wrong !== undefined) {
    fail(`There is no scope '${excerpt(wrong)}'. The scopes are: ${scopeNames.join(", ")}.`);
  }
  if (words.length === 0) fail(`A key needs at least one scope. The scopes are: ${scopeNames.join(", ")}.`);
  return scopeNames.filter((scope) => words.includes(scope));
}

/** Each once. */
export function models(value: unknown, known: readonly string[]): string[] {
  const words = [...new Set(list(value, "models"))];
  const wrong = words.find((word) => !known.includes(word));
  if (wrong !== undefined) {
    const like = known.filter((id) => id.split("/").includes(wrong.split("/").at(-1) ?? "")).slice(0, 3);
    const hint = like.length > 0 ? ` Did you mean ${like.join(" or ")}?` : " To list the models, call GET /v1/models.";
    fail(`The catalog has no model '${excerpt(wrong)}'.${hint}`);
  }
  if (words.length === 0) fail("Specify at least one model, or omit the list to allow every model.");
  return words;
}

const instantForm = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2}))?$/i;

/** ISO 8601 with a zone; a date alone is its first moment in UTC. */
function instant(value: unknown): Date {
  const word = text(value, "an instant");
  const form = instantForm.exec(word);
  const [year, month, day] = form ? form.slice(1, 4).map(Number) : [];
  const at = new Date(
    form
      ? word
          .replace(" ", "T")
          .replace(/([+-]\d{2})(\d{2})$/, "$1:$2")
          .toUpperCase()
      : Number.NaN,
  );
  // Some JavaScript engines read 30 February as 2 March; nobody means that.
  const exists = new Date(Date.UTC(year ?? 0, (month ?? 0) - 1, day)).getUTCDate() === day;
  if (Number.isNaN(at.getTime()) || !exists) {
    fail(
      `'${excerpt(word)}' is not an instant. Use ISO 8601 with a time zone, such as 2030-01-31T12:00:00Z, or a date (UTC).`,
    );
  }
  return at;
}

/** The beginning of an hour in UTC: an instant, a date, or a month such as 2026-11. */
export function hour(value: unknown): Date {
  const at = instant(typeof value === "string" && /^\d{4}-\d{2}$/.test(value.trim()) ? `${value.trim()}-01` : value);
  if (at.getTime() % 3_600_000 !== 0) {
    fail(`${at.toISOString()} is not the beginning of an hour in UTC. Usage is added up by such hours.`);
  }
  const year = at.getUTCFullYear();
  if (year < 2000 || year > 2200) fail(`A report must lie between the years 2000 and 2200, not in ${year}.`);
  return at;
}

export function futureInstant(value: unknown, now_ms: number): Date {
  const at = instant(value);
  if (at.getTime() <= now_ms) fail(`${at.toISOString()} is in the past. Specify an instant in the future.`);
  return at;
}

/** Past or future: weeks and months extend in both directions. */
export function anchor(value: unknown): Date {
  const at = instant(value);
  const year = at.getUTCFullYear();
  if (year < 2000 || year > 2200) fail(`An anchor must be between the years 2000 and 2200, not in ${year}.`);
  return at;
}

const unit_ms = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `30m`, `1h`, `7d`, `0s`, in milliseconds; a year at most. */
export function duration(value: unknown, what = "grace period"): number {
  const word = text(value, "a duration");
  const form = /^(\d{1,9})([smhd])$/.exec(word);
  const ms = form ? Number(form[1]) * unit_ms[form[2] as keyof typeof unit_ms] : Number.NaN;
  if (Number.isNaN(ms) || ms > grace_days_max * unit_ms.d) {
    fail(`'${excerpt(word)}' is not a ${what}. Use a duration such as 30m, 1h, or 7d, up to 365d, or 0s for none.`);
  }
  return ms;
}

export function count(value: unknown, max: number, what: string): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= max) return value;
  fail(`${what} must be a whole number from 1 to ${max}.`);
}

export function choice<Word extends string>(value: unknown, words: readonly Word[], what: string): Word {
  const word = text(value, `a ${what}`);
  const known = words.find((one) => one === word);
  return known ?? fail(`There is no ${what} '${excerpt(word)}'. Use one of: ${words.join(", ")}.`);
}

/** As operators are named in the audit log. */
export function operatorName(value: unknown): string {
  const word = text(value, "an operator's name");
  if (/^[\w.@+-]{1,64}$/.test(word)) return word;
  fail(`'${excerpt(word)}' is not a name for an operator. Use 1 to 64 letters, digits, and the characters . _ @ + -`);
}

export function signedCount(value: unknown, max: number, what: string): number {
  if (typeof value === "number" && Number.isInteger(value) && value !== 0 && Math.abs(value) <= max) return value;
  fail(`${what} must be a whole number other than 0, from -${max} to ${max}.`);
}

const networks_max = 100;
const network_bits_max = 64;

/** Each once. Of IPv6, a subscriber has a /64, and that is what an address stands for. */
export function networks(value: unknown): string[] {
  const words = [...new Set(list(value, "addresses"))];
  const isWide = (word: string) => !word.includes(":") || Number(word.split("/")[1] ?? "128") <= network_bits_max;
  const wrong = words.find((word) => !isNetwork(word));
  if (wrong !== undefined)
    fail(`'${excerpt(wrong)}' is not an address or a network. Use one such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/64.`);
  const narrow = words.find((word) => !isWide(word));
  if (narrow !== undefined)
    fail(`'${excerpt(narrow)}' is less than an IPv6 client has. Use its network of 64 bits, such as 2001:db8::/64.`);
  if (words.length === 0) fail("Specify at least one address, or allow every address.");
  if (words.length > networks_max) fail(`A key can have at most ${networks_max} addresses and networks.`);
  return words;
}

const labels_max = 20;

/** What is named is set, or with null taken away; all else stays. */
export function labels(changes: unknown, before: Record<string, string>): Record<string, string> {
  if (typeof changes !== "object" || changes === null || Array.isArray(changes))
    fail("Specify labels by name, each with a text or null.");
  const after = new Map(Object.entries(before));
  for (const [label, value] of Object.entries(changes)) {
    if (!/^[a-z0-9][a-z0-9._/-]{0,62}$/.test(label))
      fail(`'${excerpt(label)}' is not a label's name. Use 1 to 63 lowercase letters, digits, and . _ - /`);
    if (value === null) after.delete(label);
    else after.set(label, name(value, `The label '${label}'`));
  }
  if (after.size > labels_max) fail(`A key can have at most ${labels_max} labels.`);
  return Object.fromEntries([...after].sort(([one], [other]) => (one < other ? -1 : 1)));
}

export function list(value: unknown, what: string): string[] {
  if (!Array.isArray(value) || value.length > 1000 || !value.every((one) => typeof one === "string")) {
    fail(`Specify the ${what} as a list of names.`);
  }
  return value.map((one) => one.trim()).filter((one) => one !== "");
}
