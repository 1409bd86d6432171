/**
 * The limits that count for a person in an organization, and whether an act raises one of them (docs/access.md, Limits
 * of one's own). Pure.
 */

/**
 * A person who acts in an organization, and whose acts may not raise the limits that count for the same person there.
 */
export interface OwnLimits {
  personId: string;
  organizationId: string;
  /** Throws the error that refuses the act; its changes are then rolled back. */
  refuse(): never;
}

/**
 * Limits that count for calls of the person. `entrance` says for which calls they count:
 * - a key's ID: calls by that key
 * - `new`: by a future key or token
 * - `all`: by any key or token
 *
 * For one entrance and pattern of models, there is at most one element for each `place` (the subject whose limits they
 * are).
 */
export interface CountingLimits {
  entrance: string;
  place: "key" | "team" | "person";
  /**
   * The ID of the team, if the place is `team`. Null for keys: a key's own limits are compared with the limits that a
   * new key gets.
   */
  team: string | null;
  /** The pattern of the models to which the limits apply; "": all models. */
  models: string;
  /** The limits of a budget in a fixed order; null: no limit. */
  limits: readonly (number | null)[];
  /** The limits with the raise (temporary increase) in force, which ends at `raisedUntil`. */
  raised: readonly (number | null)[];
  raisedUntil: Date | null;
}

/**
 * Whether a limit that counted before no longer counts, is higher, or is raised for longer. Another team with the same
 * limits does not count as the same limit, because its usage is another. The limits of a key that the act created are
 * compared with the limits that a new key would have had before.
 */
export function isAnyRaised(before: readonly CountingLimits[], after: readonly CountingLimits[]): boolean {
  const was = Map.groupBy(before, ({ entrance }) => entrance);
  const is = Map.groupBy(after, ({ entrance }) => entrance);
  // A key that has ended can no longer call, so it is not compared. The limits for all keys (`all`) and for future keys
  // (`new`) are always compared.
  const entrances = new Set(["new", "all", ...is.keys()]);
  return [...entrances].some((entrance) =>
    (was.get(entrance) ?? was.get("new") ?? []).some((one) => {
      const now = is
        .get(entrance)
        ?.find(({ place, team, models }) => place === one.place && team === one.team && models === one.models);
      return isRaised(one, now ?? { ...one, ...unlimited });
    }),
  );
}

const unlimited = { limits: [], raised: [], raisedUntil: null } satisfies Partial<CountingLimits>;

function isRaised(before: CountingLimits, after: CountingLimits): boolean {
  const isLonger = before.raisedUntil && after.raisedUntil && after.raisedUntil > before.raisedUntil;
  return isHigher(before.limits, after.limits) || isHigher(before.raised, after.raised) || isLonger === true;
}

function isHigher(before: CountingLimits["limits"], after: CountingLimits["limits"]): boolean {
  return before.some((limit, index) => limit !== null && (after[index] ?? Number.POSITIVE_INFINITY) > limit);
}
