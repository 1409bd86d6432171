/** The wanted state: the file of organizations, and the options of the comparison. */
import type { Path } from "../../../core/schema/walk.ts";
import type { Key } from "../key.ts";
import type { Values } from "./kind.ts";
import type { OrganizationState, State } from "./state.ts";
import type { Problem } from "./step.ts";

export type Section = Readonly<Record<string, Values>>;
export type WantedOrganization = Values & { readonly teams?: Section; readonly keys?: Section };

/** A person in the file. Memberships and limits are keyed by the slugs of organizations. */
export interface WantedPerson {
  readonly suspended?: boolean;
  readonly role?: string | null;
  readonly memberships?: Readonly<Record<string, Values | null>>;
  readonly limits?: Readonly<Record<string, Values>>;
}

/** The file of organizations. A section or a field that it leaves out stays as it is. */
export interface WantedFile {
  plans?: Section;
  organizations: Readonly<Record<string, WantedOrganization>>;
  people?: Readonly<Record<string, WantedPerson>>;
}

export interface CompareOptions {
  /**
   * Whether things that a section of the file does not name are removed, as are rights and limits that were given by
   * hand.
   */
  prunes: boolean;
  now_ms: number;
  /** Whether the secret of this key was lost when an earlier run created it. */
  isSecretLost?(key: Key): boolean;
}

/** The data from which the steps are derived. Problems of the file are added to `problems`. */
export interface Diff {
  wanted: WantedFile;
  state: State;
  options: CompareOptions;
  problems: Problem[];
  /** The people of the file who have not signed in yet. */
  absent: string[];
}

/** The object's own member of this name, or undefined. People choose the names, and may choose `constructor`. */
export function ownOf<Value>(members: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

/** An organization of the file. `state` is null if it does not exist. */
export interface OrganizationEntry {
  slug: string;
  path: Path;
  wanted: WantedOrganization;
  state: OrganizationState | null;
}
