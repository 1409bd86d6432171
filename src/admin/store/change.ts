/** The types of a change to a stored object that has versions (postgres/change.ts). */

/** `version`: the version that the object must still have; absent or null: the object may have any version. */
export interface VersionedChange {
  id: string;
  /** The person or token that makes the change, as the audit log records it. */
  actor: string;
  version?: number | null | undefined;
}

/**
 * The result of a change that was not made, because the object is no longer in the version that the caller read.
 * `stale`: the object as it is now.
 */
export interface Stale<Thing> {
  stale: Thing;
}
