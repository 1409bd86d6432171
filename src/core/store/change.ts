/** A change of a stored thing that has versions (postgres/change.ts). */

/** `version`: the version that the thing must still have; absent or null: any. */
export interface VersionedChange {
  id: string;
  /** The person or token that makes the change, as the audit log records it. */
  actor: string;
  version?: number | null | undefined;
}

/**
 * The result of a change to a thing that has changed since the version that the caller read: the thing as it is now.
 */
export interface Stale<Thing> {
  stale: Thing;
}
