/**
 * The STEP that brings one thing to its wanted state: the differences from its current state, and the calls of verbs
 * that remove the differences. Pure.
 */
import { decode, encode } from "../../../core/schema/codec.ts";
import type { Path } from "../../../core/schema/walk.ts";
import { canonical } from "../../store/audit-chain.ts";
import { ManagementError } from "../error.ts";
import { verbNamed } from "../verbs.ts";
import type { Call, Field, Kind, Name, RemovableKind, Values } from "./kind.ts";

/** The difference of a field, or of one member of a field, such as `limits.week`. Null in `from` or `to`: no value. */
export interface Difference {
  field: string;
  from: unknown;
  to: unknown;
}

export interface Step extends Name {
  action: "add" | "change" | "remove";
  kind: Kind<never>["word"];
  /** The thing's place in the file. */
  path: Path;
  differences: Difference[];
  /** The calls that make the change, in this order. In an addition, the first call creates the thing. */
  calls: Call[];
  /** The version that the first change expects; null: the creation returns the version, or the thing has none. */
  version: number | null;
}

/** A place in the file, and what is wrong with the value there. */
export interface Problem {
  path: Path;
  message: string;
}

interface Wanted<Now> extends Name {
  path: Path;
  values: Values;
  /** The existing thing; null: it does not exist. */
  now: Now | null;
}

/**
 * The step to the wanted state, or null if the thing is in that state already. Adds the problems of the values to
 * `problems`.
 */
export function stepTo<Now>(kind: Kind<Now>, wanted: Wanted<Now>, problems: Problem[]): Step | null {
  const { organization, name, path, now } = wanted;
  const differences: Difference[] = [];
  const calls: Call[] = [];
  const created: Record<string, unknown> = {};
  for (const [fieldName, field] of fieldsOf(kind, wanted.values)) {
    const value = normalValue(field, wanted.values[fieldName], [...path, fieldName], problems);
    if (value === undefined) continue;
    const isBorn = now === null && value !== null && takes(kind, field.member);
    const before = isBorn ? undefined : now === null ? field.fresh : field.read(now);
    const changed = changeOf(fieldName, field, before, value);
    if (changed.differences.length === 0) continue;
    differences.push(...changed.differences);
    if (isBorn) created[field.member!] = value;
    else merge(calls, field.sets(changed.value), kind.subject(wanted, now));
  }
  const step = { kind: kind.word, organization, name, path, differences };
  if (now === null) {
    const { verb, input } = kind.creation!;
    const creation = { verb, input: { ...input(wanted), ...created } };
    return { ...step, action: "add", calls: [creation, ...calls], version: null };
  }
  return calls.length === 0 ? null : { ...step, action: "change", calls, version: kind.version(now) };
}

/** The step that removes a thing that the file does not name. */
export function stepWithout<Now>(kind: RemovableKind<Now>, name: Name, path: Path, now: Now): Step {
  const call = { verb: kind.removes, input: { ...kind.subject(name, now) } };
  const { organization, name: own } = name;
  const version = kind.version(now);
  return { action: "remove", kind: kind.word, organization, name: own, path, differences: [], calls: [call], version };
}

/** The fields that the file sets, in the order in which the kind lists its fields; they are set in this order. */
function fieldsOf<Now>(kind: Kind<Now>, values: Values): [string, Field<Now>][] {
  return Object.entries(kind.fields).filter(([name]) => values[name] !== undefined);
}

/** Whether the verb that creates a thing takes a member of this name. */
function takes<Now>({ creation }: Kind<Now>, member: string | null): boolean {
  return creation !== null && member !== null && Object.hasOwn(verbNamed(creation.verb).takes.properties, member);
}

function normalValue<Now>(field: Field<Now>, value: unknown, path: Path, problems: Problem[]): unknown {
  try {
    const decoded = encode(field.schema, decode(field.schema, value));
    return field.normal ? field.normal(decoded) : decoded;
  } catch (cause) {
    if (!(cause instanceof ManagementError)) throw cause;
    problems.push({ path, message: cause.message });
    return undefined;
  }
}

/**
 * The differences of one field, and the value to set. If the field is a map, the value has only the members that
 * differ.
 */
function changeOf<Now>(name: string, { compares }: Field<Now>, before: unknown, value: unknown) {
  if (compares !== "map" || value === null || value === undefined) {
    const isSame = comparable(before, compares) === comparable(value, compares);
    return { differences: isSame ? [] : [{ field: name, from: before ?? null, to: value }], value };
  }
  const was = (before ?? {}) as Values;
  const members = Object.entries(value).filter(
    ([member, to]) => canonical(was[member] ?? null) !== canonical(to) || (before === undefined && to === null),
  );
  const differences = members.map(([member, to]) => ({ field: `${name}.${member}`, from: was[member] ?? null, to }));
  return { differences, value: Object.fromEntries(members) };
}

function comparable(value: unknown, compares: Field<never>["compares"]): string {
  return canonical(compares === "set" && Array.isArray(value) ? [...new Set(value)].sort() : (value ?? null));
}

/**
 * Adds a call, or merges it into an earlier call of the same verb. A person's fields are set by one call for each
 * organization.
 */
function merge(calls: Call[], { verb, input }: Call, subject: Values): void {
  const whole = { ...subject, ...input };
  const found = calls.find((call) => call.verb === verb && call.input.organization === whole.organization);
  if (found) Object.assign(found.input, input);
  else calls.push({ verb, input: whole });
}
