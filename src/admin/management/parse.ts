/** Checks of texts that a schema cannot express. Each function returns its value, or throws a ManagementError. Pure. */
import { isNetwork } from "../../core/auth/network.ts";
import { plain } from "../../core/inference/plain-text.ts";
import { closestName } from "../../core/schema/closest.ts";
import { fail } from "./error.ts";

const day_ms = 86_400_000;
const grace_days_max = 365;

/** The beginning of a text, made safe to quote on one line. */
export function excerpt(text: string): string {
  const line = plain(text);
  return line.length > 80 ? `${line.slice(0, 80)}…` : line;
}

/** Refuses a name that no thing of this kind has. `list`: the words of the command that lists the things. */
export function missing(thing: string, name: string, all: string, list: string): never {
  return fail(`There is no ${thing} '${excerpt(name)}'. To list all${all}, run: sluice ${list}`, "resource_not_found");
}

export const instantForm =
  /^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?([Zz]|[+-][0-9]{2}:?[0-9]{2}))?$/;

/** Parses an instant in ISO 8601 with a zone; a date without a time means its first moment in UTC. */
export function instant(word: string): Date {
  const at = new Date(
    word
      .replace(" ", "T")
      .replace(/([+-]\d{2})(\d{2})$/, "$1:$2")
      .toUpperCase(),
  );
  const [year = 0, month = 0, day = 0] = word.slice(0, 10).split("-").map(Number);
  // Some JavaScript engines parse 30 February as 2 March. Such a date is refused.
  const exists = new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day;
  // The database has no year 0, and ISO 8601 has no year above 9999.
  const isDated = at.getUTCFullYear() >= 1 && at.getUTCFullYear() <= 9999;
  if (!isDated || !exists) {
    fail(
      `'${excerpt(word)}' is not an instant. Use ISO 8601 with a time zone, such as 2030-01-31T12:00:00Z, or a date (UTC).`,
    );
  }
  return at;
}

/** Parses an instant, a date, or a month such as 2026-11, which must be the beginning of an hour in UTC. */
export function hour(word: string): Date {
  const at = instant(/^\d{4}-\d{2}$/.test(word) ? `${word}-01` : word);
  if (at.getTime() % 3_600_000 !== 0) {
    fail(`${at.toISOString()} is not the beginning of an hour in UTC. Usage is added up by such hours.`);
  }
  return inRange(at, (year) => `A report must lie between the years 2000 and 2200, not in ${year}.`);
}

/**
 * Checks an anchor (an instant from which weeks and months are counted). It may be past or future: they extend in both
 * directions.
 */
export function anchor(at: Date): Date {
  return inRange(at, (year) => `An anchor must be between the years 2000 and 2200, not in ${year}.`);
}

function inRange(at: Date, refusal: (year: number) => string): Date {
  const year = at.getUTCFullYear();
  return year < 2000 || year > 2200 ? fail(refusal(year)) : at;
}

export function future(at: Date, now_ms: number): Date {
  if (at.getTime() <= now_ms) fail(`${at.toISOString()} is in the past. Specify an instant in the future.`);
  return at;
}

const unit_ms = { s: 1000, m: 60_000, h: 3_600_000, d: day_ms } as const;

/** Parses a duration such as `30m`, `1h`, `7d` or `0s` into milliseconds; a year is the longest. */
export function duration(word: string): number {
  const ms = Number(word.slice(0, -1)) * unit_ms[word.slice(-1) as keyof typeof unit_ms];
  if (ms <= grace_days_max * day_ms) return ms;
  return fail(
    `'${excerpt(word)}' is too long. Use a duration such as 30m, 1h, or 7d, up to ${grace_days_max}d, or 0s for none.`,
  );
}

/**
 * Checks that each name is a model of the catalog, and returns the public ids, each once. An alias is replaced by its
 * model's id.
 */
export function models(
  names: readonly string[],
  known: readonly string[],
  aliases?: ReadonlyMap<string, string>,
): string[] {
  const ids = names.map((name) => aliases?.get(name) ?? name);
  const wrong = ids.find((id) => !known.includes(id));
  if (wrong !== undefined) {
    const ofThatName = known.filter((id) => id.split("/").includes(wrong.split("/").at(-1) ?? "")).slice(0, 3);
    const like = ofThatName.length > 0 ? ofThatName : [closestName(wrong, known)].filter((id) => id !== null);
    const hint = like.length > 0 ? ` Did you mean ${like.join(" or ")}?` : " To list the models, call GET /v1/models.";
    fail(`The catalog has no model '${excerpt(wrong)}'.${hint}`);
  }
  return [...new Set(ids)];
}

const network_bits_max = 64;

/**
 * Checks addresses and networks, and returns each once. An IPv6 client controls a whole /64, so a narrower IPv6 network
 * is refused.
 */
export function networks(given: readonly string[]): string[] {
  const wrong = given.find((word) => !isNetwork(word));
  if (wrong !== undefined)
    fail(`'${excerpt(wrong)}' is not an address or a network. Use one such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/64.`);
  const isWide = (word: string) => !word.includes(":") || Number(word.split("/")[1] ?? "128") <= network_bits_max;
  const narrow = given.find((word) => !isWide(word));
  if (narrow !== undefined)
    fail(`'${excerpt(narrow)}' is less than an IPv6 client has. Use its network of 64 bits, such as 2001:db8::/64.`);
  return [...new Set(given)];
}

export const labels_max = 20;

/** The labels after a change: each label in the change is set, or removed if its value is null. */
export function labels(
  changes: Readonly<Record<string, string | null>>,
  before: Readonly<Record<string, string>>,
): Record<string, string> {
  const after = new Map(Object.entries(before));
  for (const [label, value] of Object.entries(changes)) {
    if (value === null) after.delete(label);
    else after.set(label, value);
  }
  if (after.size > labels_max) fail(`A key can have at most ${labels_max} labels.`);
  return Object.fromEntries([...after].sort(([one], [other]) => (one < other ? -1 : 1)));
}
