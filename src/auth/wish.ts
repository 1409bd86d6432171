/**
 * An administrator's words, checked: each function answers the value it stands for, or throws a Refusal that says what
 * would do. Pure. Arguments are `unknown` because they may have come through the socket.
 */
import { type Scope, scopes as scopeNames } from "../store/directory.ts";
import { Refusal } from "./refusal.ts";

const name_chars_max = 200;
const text_chars_max = 1000;
const grace_days_max = 365;

export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

/** A piece of what was given, safe in one line. */
export function shown(text: string): string {
  const line = text.replace(/\p{Cc}/gu, "?");
  return line.length > 80 ? `${line.slice(0, 80)}…` : line;
}

/** Also what the database takes: no NUL, no half of a surrogate pair. */
function isOneLine(words: string): boolean {
  return words.isWellFormed() && !/[\p{Cc}\u2028\u2029]/u.test(words);
}

export function text(value: unknown, what: string): string {
  if (typeof value !== "string" || value.length > text_chars_max) throw new Refusal(`Give ${what}.`);
  const trimmed = value.trim();
  if (trimmed === "" || !isOneLine(trimmed)) throw new Refusal(`Give ${what}.`);
  return trimmed;
}

/** Lower-case letters, digits and hyphens, 1 to 63, as a host name's label, so that it fits wherever names stand. */
export function slug(value: unknown): string {
  const word = text(value, "a slug");
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(word)) return word;
  throw new Refusal(
    `'${shown(word)}' is not a slug. A slug has 1 to 63 lower-case letters, digits and hyphens, and begins and ends with a letter or digit.`,
  );
}

/** Anything that people read, on one line. */
export function name(value: unknown, what: string): string {
  if (typeof value !== "string" || value.trim() === "") throw new Refusal(`${what} must not be empty.`);
  const words = value.trim();
  if (words.length > name_chars_max) throw new Refusal(`${what} must have at most ${name_chars_max} characters.`);
  if (!isOneLine(words)) {
    throw new Refusal(`${what} must not have line breaks or control characters.`);
  }
  return words;
}

export function plan(value: unknown, known: readonly string[]): string {
  const word = text(value, "a plan's name");
  if (known.includes(word)) return word;
  if (known.length === 0) throw new Refusal("The catalog has no plans. Add one under 'plans:' in sluice.yaml.");
  throw new Refusal(`There is no plan '${shown(word)}'. The catalog has: ${known.join(", ")}.`);
}

/** Absent: all of them. In the catalog's order, each once. */
export function scopes(value: unknown): Scope[] {
  if (isAbsent(value)) return [...scopeNames];
  const words = list(value, "scopes");
  const wrong = words.find((word) => !scopeNames.includes(word as Scope));
  if (wrong !== undefined) {
    throw new Refusal(`There is no scope '${shown(wrong)}'. The scopes are: ${scopeNames.join(", ")}.`);
  }
  if (words.length === 0) throw new Refusal(`A key needs at least one scope of: ${scopeNames.join(", ")}.`);
  return scopeNames.filter((scope) => words.includes(scope));
}

/** Each once. */
export function models(value: unknown, known: readonly string[]): string[] {
  const words = [...new Set(list(value, "models"))];
  const wrong = words.find((word) => !known.includes(word));
  if (wrong !== undefined) {
    const like = known.filter((id) => id.split("/").includes(wrong.split("/").at(-1) ?? "")).slice(0, 3);
    const hint = like.length > 0 ? ` Did you mean ${like.join(" or ")}?` : " GET /v1/models lists those that it has.";
    throw new Refusal(`The catalog has no model '${shown(wrong)}'.${hint}`);
  }
  if (words.length === 0) throw new Refusal("Name at least one model, or leave the list out to allow all.");
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
  // Some engines take 30 February for 2 March; nobody who writes it means that.
  const exists = new Date(Date.UTC(year ?? 0, (month ?? 0) - 1, day)).getUTCDate() === day;
  if (Number.isNaN(at.getTime()) || !exists) {
    throw new Refusal(
      `'${shown(word)}' is not an instant. Write it as 2030-01-31T12:00:00Z, with a zone, or as a date (UTC).`,
    );
  }
  return at;
}

export function futureInstant(value: unknown, now_ms: number): Date {
  const at = instant(value);
  if (at.getTime() <= now_ms) throw new Refusal(`${at.toISOString()} is over. Name an instant in the future.`);
  return at;
}

/** Past or to come: weeks and months reach in both directions. */
export function anchor(value: unknown): Date {
  const at = instant(value);
  const year = at.getUTCFullYear();
  if (year < 2000 || year > 2200) throw new Refusal(`An anchor lies between the years 2000 and 2200, not in ${year}.`);
  return at;
}

const unit_ms = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `30m`, `1h`, `7d`, `0s`: milliseconds, a year at most. */
export function duration(value: unknown): number {
  const word = text(value, "a duration");
  const form = /^(\d{1,9})([smhd])$/.exec(word);
  const ms = form ? Number(form[1]) * unit_ms[form[2] as keyof typeof unit_ms] : Number.NaN;
  if (Number.isNaN(ms) || ms > grace_days_max * unit_ms.d) {
    throw new Refusal(`'${shown(word)}' is not a grace period. Write 30m, 1h, 7d, or 0s for none; at most 365d.`);
  }
  return ms;
}

export function count(value: unknown, max: number, what: string): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw new Refusal(`${what} must be a whole number from 1 to ${max}.`);
}

export function signedCount(value: unknown, max: number, what: string): number {
  if (typeof value === "number" && Number.isInteger(value) && value !== 0 && Math.abs(value) <= max) return value;
  throw new Refusal(`${what} must be a whole number other than 0, from -${max} to ${max}.`);
}

function list(value: unknown, what: string): string[] {
  if (!Array.isArray(value) || value.length > 1000 || !value.every((one) => typeof one === "string")) {
    throw new Refusal(`Give the ${what} as a list of names.`);
  }
  return value.map((one) => one.trim()).filter((one) => one !== "");
}
