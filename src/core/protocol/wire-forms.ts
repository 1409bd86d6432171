/** The forms in which a protocol lets a caller write the same thing. An engine of this protocol reads them alike. */
export interface WireForms {
  /** The text that means the same as this list of one plain object; null if there is none. */
  textOf(list: readonly unknown[]): string | null;
  /** Reports whether a member with this value means the same as its absence. */
  isImplied(name: string, value: unknown): boolean;
}

/** The forms of a protocol in which each thing has one form. */
export const singleForms: WireForms = { textOf: () => null, isImplied: () => false };
