/** The wanted state: the file of organizations, and how it is to be compared. */
import type { Path } from "../../schema/walk.ts";
import type { BudgetedKey } from "../budgets.ts";
import type { Values } from "./kind.ts";
import type { OrganizationState, State } from "./state.ts";
import type { Problem } from "./step.ts";

export type Section = Readonly<Record<string, Values>>;
export type WantedOrganization = Values & { readonly teams?: Section; readonly keys?: Section };

/** The file. A section or a field that is left out stays as it is. */
export interface WantedFile {
  plans?: Section;
  organizations: Readonly<Record<string, WantedOrganization>>;
}

export interface Asked {
  /** Whether the things that a section of the file does not name are removed. */
  prunes: boolean;
  now_ms: number;
  /** Whether the secret of this key was lost when an earlier run created it. */
  isSecretLost?(key: BudgetedKey): boolean;
}

/** All that steps are found from. What is wrong is added to `problems`. */
export interface Look {
  wanted: WantedFile;
  state: State;
  asked: Asked;
  problems: Problem[];
}

/** An organization of the file. `state` is null if it does not exist. */
export interface Inside {
  slug: string;
  path: Path;
  wanted: WantedOrganization;
  state: OrganizationState | null;
}
