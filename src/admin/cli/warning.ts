/** A finding of `sluice doctor` that need not be fixed. */
export class Warning extends Error {}
