/**
 * The different forms in which a protocol lets a caller write the same thing. Engines of the protocol read them alike.
 */
export interface WireForms {
  /** The text that means the same as this list of one plain object; null if no text does. */
  textOf(list: readonly unknown[]): string | null;
  /** Reports whether a member with this value means the same as its absence. */
  isImplied(name: string, value: unknown): boolean;
}

/** The forms of a protocol in which nothing can be written in two ways. */
export const singleForms: WireForms = { textOf: () => null, isImplied: () => false };
