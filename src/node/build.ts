/** The version and the commit, which the build sets. */
declare const SLUICE_BUILD: string | undefined;

/** Null if the program runs from source. */
export const builtVersion: string | null = typeof SLUICE_BUILD === "undefined" ? null : SLUICE_BUILD;
export const isCompiled = builtVersion !== null;
