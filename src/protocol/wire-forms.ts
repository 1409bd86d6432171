/** The two ways in which a protocol lets a caller write the same thing: an engine of this protocol reads them alike. */
export interface WireForms {
  /** The text that may stand in place of this list of one object, whose members hold no others; null: none may. */
  textOf(list: readonly unknown[]): string | null;
  /** Whether a member with this value says no more than leaving it out. */
  isImplied(name: string, value: unknown): boolean;
}

/** The forms of a protocol that has one way to write each thing. */
export const singleForms: WireForms = { textOf: () => null, isImplied: () => false };
