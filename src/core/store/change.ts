/** A change of a thing that is kept (postgres/change.ts). */

/** `version`: the one that the thing must still have; absent or null: any. */
export interface VersionedChange {
  id: string;
  /** As the audit log records it. */
  actor: string;
  version?: number | null | undefined;
}

/** It has changed since the version that the caller read: as it is now. */
export interface Stale<Thing> {
  stale: Thing;
}
